package strictjson

import "unicode/utf8"

const hexDigits = "0123456789abcdef"

// AppendString appends s as a JSON string. HTML is not escaped. U+2028 and
// U+2029 are, because they end a line in JavaScript and in some log readers.
// What is not UTF-8 becomes U+FFFD.
func AppendString[T ~string | ~[]byte](dst []byte, s T) []byte {
	dst = append(dst, '"')
	for {
		n := plainRun(s)
		dst = append(dst, s[:n]...)
		if n == len(s) {
			return append(dst, '"')
		}
		s = s[n:]
		switch c := s[0]; {
		case c >= utf8.RuneSelf:
			r, size := decodeRune(s)
			switch r {
			case '\u2028', '\u2029':
				dst = append(dst, `\u202`...)
				dst = append(dst, hexDigits[r&0xf])
			default:
				dst = utf8.AppendRune(dst, r)
			}
			s = s[size:]
			continue
		case c == '"', c == '\\':
			dst = append(dst, '\\', c)
		case c == '\n':
			dst = append(dst, '\\', 'n')
		case c == '\r':
			dst = append(dst, '\\', 'r')
		case c == '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&0xf])
		}
		s = s[1:]
	}
}

// decodeRune decodes the first character of s without turning all of it into
// another type.
func decodeRune[T ~string | ~[]byte](s T) (rune, int) {
	var few [utf8.UTFMax]byte
	n := copy(few[:], s[:min(len(s), utf8.UTFMax)])
	return utf8.DecodeRune(few[:n])
}
