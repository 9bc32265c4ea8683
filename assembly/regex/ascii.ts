// Classes of ASCII bytes.

// @ts-ignore: decorator
@inline
export function isDigit(byte: u32): bool {
  return byte - 48 < 10
}

// @ts-ignore: decorator
@inline
export function isLetter(byte: u32): bool {
  return (byte | 32) - 97 < 26
}

// @ts-ignore: decorator
@inline
export function isAlphanumeric(byte: u32): bool {
  return isDigit(byte) || isLetter(byte)
}

export function isWord(byte: u32): bool {
  return isAlphanumeric(byte) || byte == 95
}
