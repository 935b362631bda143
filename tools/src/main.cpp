// quire: one binary, a file per subcommand.
#include "commands.h"
#include "terminal.h"

#include <quire/error.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <iostream>
#include <string>
#include <vector>

int main(int argc, char** argv) {
  CLI::App app{"Quire: cache indices and the ops on them, exact on a CPU and checked everywhere else."};
  app.name("quire");
  app.require_subcommand(1);
  app.set_version_flag("--version", QUIRE_VERSION);
  int exit_code = 0;
  quire::tools::add_backends(app, exit_code);
  quire::tools::add_conformance(app, exit_code);
  quire::tools::add_doctor(app, exit_code);
  quire::tools::add_eval(app, exit_code);
  quire::tools::add_replay(app, exit_code);
  quire::tools::add_story(app, exit_code);
  try {
    // CLI11 would only say that a subcommand is required.
    std::vector<std::string> names;
    for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
    if (argc > 1 && argv[1][0] != '-' && std::find(names.begin(), names.end(), argv[1]) == names.end()) {
      quire::reject("command", fmt::format("\"{}\"", argv[1]), fmt::format("{}", fmt::join(names, ", ")));
    }
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {
    const int code = app.exit(success);  // --help, --version
    if (std::cout.flush() && std::fflush(stdout) == 0) return code;
    quire::tools::complain("quire: standard output can't be written\n");
    return 2;
  } catch (const CLI::ParseError& error) {
    quire::tools::complain("quire: {} (quire --help, quire COMMAND --help)\n", quire::printable(error.what()));
    return 2;
  } catch (const quire::Error& error) {
    quire::tools::complain("quire: {}\n", error.what());
    return 2;
  } catch (const std::bad_alloc&) {
    quire::tools::complain("quire: no memory\n");
    return 2;
  } catch (const std::exception& error) {
    quire::tools::complain("quire: {}\n", error.what());
    return 2;
  }
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    quire::tools::complain("quire: standard output can't be written\n");
    return 2;
  }
  return exit_code;
}
