// The `stof` command: each subcommand is a few calls of the library. README.md has a tour.
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <iostream>
#include <new>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "command.hpp"

namespace {

using stof::command::ExitCode;

constexpr const char* kFooter = R"(Exit codes:
  0  done
  1  a graph, mask, file or value is wrong, or a check failed
  2  the command line is wrong
  3  a template does not render or compile
  4  the machine: no GPU, driver or compiler, or one that fails
  5  a bug in stof

`stof COMMAND --help` has examples.)";

int report(ExitCode code, std::string_view text) {
  // Not by fmt::print, which throws where stderr is closed.
  std::fputs(fmt::format("stof: {}\n", text).c_str(), stderr);
  return code;
}

// Whether all text has arrived: a full disk says so no sooner.
int written() {
  std::cout.flush();
  if (std::cout && std::fflush(stdout) == 0) {
    return ExitCode::Done;
  }
  return report(ExitCode::BadInput, fmt::format("stdout: cannot write: {}", std::strerror(errno)));
}

// What nothing took, which may be why something is missing: "; 'paln' is not known".
std::string unknown_word(const CLI::App& stof) {
  const std::vector<std::string> words = stof.remaining(true);
  return words.empty() ? "" : fmt::format("; '{}' is not known", words.front());
}

// Runs what the command line asks for; the callbacks of the subcommands work while it is parsed.
int run(CLI::App& stof, int argc, char** argv) {
  using namespace stof::command;  // NOLINT(google-build-using-namespace)
  try {
    stof.parse(argc, argv);
    return written();
  } catch (const CLI::Success& help) {
    stof.exit(help);
    return written();
  } catch (const CLI::RequiredError& error) {
    return report(BadUsage,
                  fmt::format("{}{}; --help tells more", error.what(), unknown_word(stof)));
  } catch (const CLI::ParseError& error) {
    return report(BadUsage, fmt::format("{}; --help tells more", error.what()));
  } catch (const Failed& failed) {
    written();
    return failed.code;
  } catch (const stof::TemplateError& error) {
    return report(BadTemplate, error.what());
  } catch (const stof::CompileError& error) {
    return report(BadTemplate, error.what());
  } catch (const stof::CudaError& error) {
    return report(BadMachine, error.what());
  } catch (const stof::InternalError& error) {
    return report(Bug, error.what());
  } catch (const stof::Error& error) {
    return report(BadInput, error.what());
  } catch (const std::system_error& error) {  // of what is printed
    return report(BadInput, error.what());
  } catch (const std::bad_alloc&) {
    return report(BadMachine, "there is not enough memory");
  } catch (const std::exception& error) {
    return report(Bug, error.what());
  }
}

// Else a value of no characters would be as good as none: another GPU, another cache.
void refuse_empty_values(CLI::App& app) {
  const CLI::Validator is_not_empty(
      [](const std::string& value) { return std::string(value.empty() ? "it is empty" : ""); }, "");
  for (CLI::Option* option : app.get_options()) {
    option->check(is_not_empty);
  }
  for (CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    refuse_empty_values(*command);
  }
}

}  // namespace

// NOLINTNEXTLINE(bugprone-exception-escape): of memory alone, or a stderr that is closed
int main(int argc, char** argv) {
  CLI::App stof(
      "Sparse Transformers as fused CUDA kernels: runs graphs, shows plans and masks, looks after "
      "templates and the cache.",
      "stof");
  stof.require_subcommand(1);
  stof.set_version_flag("--version", stof::describe);
  stof.set_help_all_flag("--help-all", "This, with every subcommand");
  stof.footer(kFooter);
  stof::command::add_run(stof);
  stof::command::add_plan(stof);
  stof::command::add_compile(stof);
  stof::command::add_tune(stof);
  stof::command::add_calibrate(stof);
  stof::command::add_mask(stof);
  stof::command::add_render(stof);
  stof::command::add_template(stof);
  stof::command::add_cache(stof);
  stof::command::add_model(stof);
  stof::command::add_bench(stof);
  stof::command::add_devices(stof);
  stof::command::add_completion(stof);
  stof::command::add_version(stof);
  refuse_empty_values(stof);
  return run(stof, argc, argv);
}
