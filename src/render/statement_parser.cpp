#include <algorithm>
#include <initializer_list>

#include <fmt/format.h>

#include "render/parser.hpp"
#include "render/resolver.hpp"
#include "render/text.hpp"

namespace stof::render {

namespace {

using Conditionals = ExpressionParser::Conditionals;
using Attributes = ExpressionParser::Attributes;

class StatementParser {
 public:
  explicit StatementParser(ParsedTemplate& parsed)
      : parsed_(parsed), tokens_(parsed.source), expressions_(tokens_) {}

  void run() { parsed_.body = parse_until({}); }

 private:
  using EndWords = std::initializer_list<std::string_view>;

  // Statements up to a tag that begins with one of the words; that word is the next token. Up to
  // the end of the template for no words.
  Body parse_until(EndWords end_words) {
    if (++depth_ > kMaxStatementDepth) {
      tokens_.fail(fmt::format("tags nested deeper than {} levels", kMaxStatementDepth));
    }
    Body body;
    Output output;
    std::size_t output_offset = 0;
    const auto flush = [&] {
      if (!output.items.empty()) {
        body.push_back({.node = std::exchange(output, {}), .offset = output_offset});
      }
    };
    while (tokens_.current().kind != TokenKind::End) {
      const Token token = tokens_.take();
      output_offset = output.items.empty() ? token.offset : output_offset;
      if (token.kind == TokenKind::Data) {
        output.items.push_back({.content = token.text, .line = line(token)});
      } else if (token.kind == TokenKind::VariableBegin) {
        output.items.push_back({.content = expressions_.parse_tuple(), .line = line(token)});
        tokens_.expect(TokenKind::VariableEnd, "the end of the expression");
      } else {
        flush();
        if (is_any(end_words)) {
          --depth_;
          return body;
        }
        body.push_back(parse_statement());
        tokens_.expect(TokenKind::BlockEnd, "the end of the tag");
      }
    }
    flush();
    if (end_words.size() != 0) {
      tokens_.fail(opening_offset_,
                   fmt::format("this tag is never closed: expected {}", list(end_words)));
    }
    --depth_;
    return body;
  }

  // The body of a tag, from the end of its opening to the word that ends it.
  Body parse_body(EndWords end_words) {
    tokens_.skip_operator(":");
    tokens_.expect(TokenKind::BlockEnd, "the end of the tag");
    const std::size_t outer = std::exchange(opening_offset_, statement_offset_);
    Body body = parse_until(end_words);
    opening_offset_ = outer;
    return body;
  }
  Body parse_whole_body(std::string_view end_word) {
    Body body = parse_body({end_word});
    tokens_.take();
    return body;
  }

  Statement parse_statement() {
    const Token& tag = tokens_.current();
    const std::size_t offset = tag.offset;
    if (tag.kind != TokenKind::Name) {
      tokens_.fail(fmt::format("expected the name of a tag, got {}", describe(tag)));
    }
    const std::size_t outer = std::exchange(statement_offset_, offset);
    Statement::Node node = parse_tag(tokens_.take());
    statement_offset_ = outer;
    return {.node = std::move(node), .offset = offset};
  }

  Statement::Node parse_tag(const Token& tag) {
    struct Tag {
      std::string_view name;
      Statement::Node (StatementParser::*parse)();
    };
    static constexpr Tag kTags[] = {{"block", &StatementParser::parse_block},
                                    {"call", &StatementParser::parse_call_block},
                                    {"extends", &StatementParser::parse_extends},
                                    {"filter", &StatementParser::parse_filter_block},
                                    {"for", &StatementParser::parse_for},
                                    {"from", &StatementParser::parse_from},
                                    {"if", &StatementParser::parse_if},
                                    {"import", &StatementParser::parse_import},
                                    {"include", &StatementParser::parse_include},
                                    {"macro", &StatementParser::parse_macro},
                                    {"print", &StatementParser::parse_print},
                                    {"set", &StatementParser::parse_set},
                                    {"with", &StatementParser::parse_with}};
    const auto* found = std::ranges::find(kTags, tag.text, &Tag::name);
    if (found != std::end(kTags)) {
      return (this->*found->parse)();
    }
    if (tag.text == "autoescape") {
      tokens_.fail(tag.offset, "autoescape is not supported: kernels are no HTML");
    }
    tokens_.fail(tag.offset, fmt::format("unknown tag '{}'{}", tag.text, open_tag_hint()));
  }

  std::string open_tag_hint() const {
    return depth_ > 1
               ? fmt::format(" (the open tag is on line {})", parsed_.source.line(opening_offset_))
               : "";
  }

  Statement::Node parse_set() {
    Target target = expressions_.parse_target(Attributes::Allowed);
    if (tokens_.skip_operator("=")) {
      return Assign{
          .target = std::move(target), .value = expressions_.parse_tuple(), .exports = {}};
    }
    AssignBlock block{.target = std::move(target), .body = {}};
    if (tokens_.skip_operator("|")) {
      block.filter = expressions_.parse_filters();
    }
    block.body = parse_whole_body("endset");
    return block;
  }

  Statement::Node parse_for() {
    Target target = expressions_.parse_target(Attributes::Refused);
    tokens_.expect_name("in");
    For loop{.target = std::move(target),
             .iterable = expressions_.parse_tuple(Conditionals::Refused),
             .body = {},
             .otherwise = {}};
    if (tokens_.skip_name("if")) {
      loop.filter = expressions_.parse();
    }
    loop.is_recursive = tokens_.skip_name("recursive");
    loop.body = parse_body({"endfor", "else"});
    if (tokens_.take().text == "else") {
      loop.otherwise = parse_whole_body("endfor");
    }
    return loop;
  }

  Statement::Node parse_if() {
    If statement;
    Token word;
    do {
      Expression test = expressions_.parse_tuple(Conditionals::Refused);
      Body body = parse_body({"elif", "else", "endif"});
      statement.branches.push_back({.test = std::move(test), .body = std::move(body)});
      word = tokens_.take();
    } while (word.text == "elif");
    if (word.text == "else") {
      statement.otherwise = parse_whole_body("endif");
    }
    return statement;
  }

  Statement::Node parse_with() {
    With with;
    while (tokens_.current().kind != TokenKind::BlockEnd) {
      if (!with.assignments.empty()) {
        tokens_.expect_operator(",");
      }
      Target target = expressions_.parse_target(Attributes::Refused);
      tokens_.expect_operator("=");
      with.assignments.emplace_back(std::move(target), expressions_.parse());
    }
    with.body = parse_whole_body("endwith");
    return with;
  }

  Statement::Node parse_block() {
    auto block = std::make_shared<Block>();
    block->offset = statement_offset_;
    block->name = tokens_.expect(TokenKind::Name, "the name of the block").text;
    block->is_scoped = tokens_.skip_name("scoped");
    block->is_required = tokens_.skip_name("required");
    block->body = parse_whole_body("endblock");
    if (block->is_required && !is_blank_body(block->body)) {
      tokens_.fail(block->offset, "a required block holds nothing but white space and comments");
    }
    tokens_.skip_name(block->name);
    if (!parsed_.blocks.emplace(block->name, block).second) {
      tokens_.fail(block->offset, fmt::format("block '{}' is defined twice", block->name));
    }
    return BlockReference{.block = std::move(block), .locals = {}};
  }

  static bool is_blank_body(const Body& body) {
    return std::ranges::all_of(body, [](const Statement& statement) {
      const auto* output = std::get_if<Output>(&statement.node);
      return output != nullptr && std::ranges::all_of(output->items, [](const OutputItem& item) {
               const auto* text = std::get_if<std::string>(&item.content);
               return text != nullptr && is_blank(*text);
             });
    });
  }

  Statement::Node parse_extends() {
    parsed_.has_extends = true;
    return Extends{.parent = expressions_.parse()};
  }

  // "with context" or "without context", or what holds where neither is said.
  bool parse_context(bool otherwise) {
    if (!is_context_next()) {
      return otherwise;
    }
    const bool has_context = tokens_.take().text == "with";
    tokens_.take();
    return has_context;
  }

  Statement::Node parse_include() {
    Include include{.name = expressions_.parse(), .locals = {}};
    if (tokens_.current().is_name("ignore") && tokens_.ahead().is_name("missing")) {
      tokens_.take();
      tokens_.take();
      include.ignores_missing = true;
    }
    include.has_context = parse_context(true);
    return include;
  }

  Statement::Node parse_import() {
    Import import{.name = expressions_.parse(), .target = {}, .locals = {}, .slot = {}};
    tokens_.expect_name("as");
    import.target = expressions_.parse_name_target().text;
    import.has_context = parse_context(false);
    return import;
  }

  Statement::Node parse_from() {
    FromImport import{.name = expressions_.parse(), .names = {}, .locals = {}};
    tokens_.expect_name("import");
    do {
      if (is_context_next()) {
        break;
      }
      import.names.push_back(parse_imported_name());
    } while (!is_context_next() && tokens_.skip_operator(","));
    import.has_context = parse_context(false);
    return import;
  }

  bool is_context_next() {
    return (tokens_.current().is_name("with") || tokens_.current().is_name("without")) &&
           tokens_.ahead().is_name("context");
  }

  ImportedName parse_imported_name() {
    const Token name = expressions_.parse_name_target();
    if (name.text.starts_with('_')) {
      tokens_.fail(name.offset, "names that start with _ cannot be imported");
    }
    std::string alias = tokens_.skip_name("as") ? expressions_.parse_name_target().text : name.text;
    return {.name = name.text, .alias = std::move(alias), .slot = {}};
  }

  std::vector<MacroParameter> parse_parameters() {
    std::vector<MacroParameter> parameters;
    tokens_.expect_operator("(");
    while (!tokens_.current().is_operator(")")) {
      if (!parameters.empty()) {
        tokens_.expect_operator(",");
      }
      const Token name = expressions_.parse_name_target();
      if (std::ranges::find(parameters, name.text, &MacroParameter::name) != parameters.end()) {
        tokens_.fail(name.offset, fmt::format("the parameter '{}' is named twice", name.text));
      }
      MacroParameter parameter{.name = name.text, .otherwise = {}, .slot = {}};
      if (tokens_.skip_operator("=")) {
        parameter.otherwise = expressions_.parse();
      } else if (!parameters.empty() && parameters.back().otherwise) {
        tokens_.fail(name.offset, "a parameter without a default follows one that has one");
      }
      parameters.push_back(std::move(parameter));
    }
    tokens_.expect_operator(")");
    return parameters;
  }

  Statement::Node parse_macro() {
    auto macro = std::make_shared<Macro>();
    macro->offset = statement_offset_;
    macro->name = expressions_.parse_name_target().text;
    macro->parameters = parse_parameters();
    macro->body = parse_whole_body("endmacro");
    return MacroDefinition{.macro = std::move(macro), .slot = {}};
  }

  Statement::Node parse_call_block() {
    auto caller = std::make_shared<Macro>();
    caller->offset = statement_offset_;
    if (tokens_.current().is_operator("(")) {
      caller->parameters = parse_parameters();
    }
    Expression call = expressions_.parse();
    const auto* node = std::get_if<Call>(&call.node);
    if (node == nullptr) {
      tokens_.fail(call.offset, "a call block wants a call");
    }
    if (std::ranges::any_of(node->arguments.named,
                            [](const auto& named) { return named.first == "caller"; })) {
      tokens_.fail(call.offset, "the argument 'caller' is given twice");
    }
    caller->body = parse_whole_body("endcall");
    return CallBlock{.caller = std::move(caller), .call = std::move(call)};
  }

  Statement::Node parse_filter_block() {
    Expression filter = expressions_.parse_filters();
    return FilterBlock{
        .filter = std::move(filter), .body = parse_whole_body("endfilter"), .frame = {}};
  }

  Statement::Node parse_print() {
    Output output;
    while (tokens_.current().kind != TokenKind::BlockEnd) {
      if (!output.items.empty()) {
        tokens_.expect_operator(",");
      }
      const int line_number = line(tokens_.current());
      output.items.push_back({.content = expressions_.parse(), .line = line_number});
    }
    return output;
  }

  bool is_any(EndWords words) const {
    const Token& token = tokens_.current();
    return token.kind == TokenKind::Name && std::ranges::find(words, token.text) != words.end();
  }

  static std::string list(EndWords words) {
    std::string text;
    for (const std::string_view word : words) {
      text += fmt::format("{}{{% {} %}}", text.empty() ? "" : " or ", word);
    }
    return text;
  }

  int line(const Token& token) const { return parsed_.source.line(token.offset); }

  ParsedTemplate& parsed_;
  TokenStream tokens_;
  ExpressionParser expressions_;
  int depth_ = 0;
  std::size_t statement_offset_ = 0;
  std::size_t opening_offset_ = 0;
};

}  // namespace

std::shared_ptr<const ParsedTemplate> parse_template(std::string file, std::string_view text) {
  auto parsed = std::make_shared<ParsedTemplate>(Source(std::move(file), text));
  StatementParser(*parsed).run();
  resolve(*parsed);
  return parsed;
}

}  // namespace stof::render
