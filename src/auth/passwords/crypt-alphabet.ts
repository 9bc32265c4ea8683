/** The digits of base 64 that all crypt(3) forms share, least significant first. */
export const cryptDigits = './0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

/** `length` digits of a number of at most 24 bits. */
export function toCryptDigits(value: number, length: number): string {
  let text = ''
  for (let left = value, at = 0; at < length; at++, left >>>= 6) text += cryptDigits[left & 63]
  return text
}
