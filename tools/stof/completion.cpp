// stof completion: what a shell needs to complete the command, from the options that it has.
#include <memory>
#include <string>

#include <fmt/ranges.h>

#include "command.hpp"

namespace stof::command {

namespace {

constexpr const char* kCompletionExamples = R"(Examples:
  source <(stof completion bash)
  stof completion bash > /etc/bash_completion.d/stof
  source <(stof completion zsh))";

// What a shell without a configuration of its own lacks; compdef comes with compinit.
constexpr const char* kZshStart =
    R"((( $+functions[compdef] )) || { autoload -Uz compinit && compinit; }
autoload -U +X bashcompinit && bashcompinit
)";

// What may stand behind the words that lead to `app`: "run plan --help --json".
std::string words_of(const CLI::App& app) {
  std::vector<std::string> words;
  for (const CLI::App* subcommand : app.get_subcommands(nullptr)) {
    words.push_back(subcommand->get_name());
  }
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      words.push_back("--" + name);
    }
  }
  return fmt::format("{}", fmt::join(words, " "));
}

// A branch of a shell's `case` for `app` and for each subcommand below it.
void add_branches(const CLI::App& app, const std::string& path, std::string& text) {
  text += fmt::format("    \"{}\") words=\"{}\" ;;\n", path, words_of(app));
  for (const CLI::App* subcommand : app.get_subcommands(nullptr)) {
    add_branches(*subcommand, path + " " + subcommand->get_name(), text);
  }
}

std::vector<std::string> paths_below(const CLI::App& app, const std::string& path) {
  std::vector<std::string> paths;
  for (const CLI::App* subcommand : app.get_subcommands(nullptr)) {
    const std::string below = path + " " + subcommand->get_name();
    paths.push_back('"' + below + '"');
    const std::vector<std::string> deeper = paths_below(*subcommand, below);
    paths.insert(paths.end(), deeper.begin(), deeper.end());
  }
  return paths;
}

// Where nothing is known, the shell completes names of files.
std::string script(const CLI::App& stof, const std::string& shell) {
  std::string branches;
  add_branches(stof, "stof", branches);
  return fmt::format(
      R"({}_stof() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} path=stof words="" i
  for ((i = 1; i < COMP_CWORD; ++i)); do
    case "$path ${{COMP_WORDS[i]}}" in
    {}) path="$path ${{COMP_WORDS[i]}}" ;;
    esac
  done
  case "$path" in
{}  esac
  COMPREPLY=($(compgen -W "$words" -- "$word"))
}}
complete -o default -F _stof stof
)",
      shell == "zsh" ? kZshStart : "", fmt::join(paths_below(stof, "stof"), " | "), branches);
}

}  // namespace

void add_completion(CLI::App& stof) {
  auto shell = std::make_shared<std::string>();
  CLI::App* app = stof.add_subcommand("completion", "Print what completes this command in a shell");
  app->add_option("SHELL", *shell, "bash or zsh")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh"}));
  app->footer(kCompletionExamples);
  app->callback([&stof, shell] { print(script(stof, *shell)); });
}

}  // namespace stof::command
