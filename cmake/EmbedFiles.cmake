# Script mode: writes OUTPUT, where the function TABLE of MODULE gives the files NAMES below
# DIRECTORY as a table of TYPE.
foreach (name IN LISTS NAMES)
    file(READ ${DIRECTORY}/${name} text)
    # Each text ends at a mark of its own hash, which no text holds.
    string(SHA256 mark "${text}")
    string(SUBSTRING ${mark} 0 16 mark)
    string(APPEND rows "    {\"${name}\"sv, R\"${mark}(${text})${mark}\"sv},\n")
endforeach ()
file(WRITE ${OUTPUT} "#include \"${MODULE}/${TABLE}.hpp\"

namespace stof::${MODULE} {

namespace {

using namespace std::string_view_literals;

constexpr ${TYPE} kFiles[] = {
${rows}};

}  // namespace

std::span<const ${TYPE}> ${TABLE}() { return kFiles; }

}  // namespace stof::${MODULE}
")
