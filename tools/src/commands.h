// The subcommands of quire. Each sets `exit_code` when it runs.
#pragma once

namespace CLI {
class App;
}

namespace quire::tools {

void add_backends(CLI::App& app, int& exit_code);
void add_conformance(CLI::App& app, int& exit_code);
void add_doctor(CLI::App& app, int& exit_code);
void add_eval(CLI::App& app, int& exit_code);
void add_replay(CLI::App& app, int& exit_code);
void add_story(CLI::App& app, int& exit_code);

}  // namespace quire::tools
