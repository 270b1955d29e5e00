#include "inspect/html_text.h"

#include "base/text.h"

namespace argosy {

std::string html_text(std::string_view text, size_t max_length) {
  // quoted() cuts between characters; its quotes say that something was done to the text.
  std::string plain = is_utf8(text) && text.size() <= max_length ? std::string(text) : quoted(text, max_length);
  std::string result;
  for (char c : plain) {
    switch (c) {
      case '<': result += "&lt;"; break;
      case '>': result += "&gt;"; break;
      case '&': result += "&amp;"; break;
      case '"': result += "&quot;"; break;
      case '\'': result += "&#39;"; break;
      default: result += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? ' ' : c;
    }
  }
  return result;
}

std::string page_start(std::string_view title, std::string_view heading, std::string_view style) {
  return format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
      "<title>{}</title><style>{}</style></head>\n<body><h1>{}</h1>\n",
      html_text(title), style, html_text(heading));
}

}  // namespace argosy
