// quire: one binary, a file per subcommand.
#include "commands.h"

#include <quire/error.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <cstdio>
#include <exception>

int main(int argc, char** argv) {
  CLI::App app{"Quire: cache indices and the ops on them, exact on a CPU and checked everywhere else."};
  app.name("quire");
  app.require_subcommand(1);
  app.set_version_flag("--version", QUIRE_VERSION);
  int exit_code = 0;
  quire::tools::add_backends(app, exit_code);
  quire::tools::add_eval(app, exit_code);
#if QUIRE_WITH_STORY
  quire::tools::add_story(app, exit_code);
#endif
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {
    return app.exit(success);  // --help, --version
  } catch (const CLI::ParseError& error) {
    fmt::print(stderr, "quire: {} (quire --help, quire COMMAND --help)\n", error.what());
    return 2;
  } catch (const quire::Error& error) {
    fmt::print(stderr, "quire: {}\n", error.what());
    return 2;
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "quire: no memory\n");
    return 2;
  } catch (const std::exception& error) {
    fmt::print(stderr, "quire: {}\n", error.what());
    return 2;
  }
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    fmt::print(stderr, "quire: standard output can't be written\n");
    return 2;
  }
  return exit_code;
}
