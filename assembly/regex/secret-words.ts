// Words after which a token is probably a secret. They also count within names of variables, as in `apiKey`, `API_KEY` and
// `db-password`, but not in `monkey` or `tokenizer`.

const WORDS: string = 'apikey|apikeys|auth|authorization|bearer|credential|credentials|key|keys|passphrase|passwd|password|passwords|pwd|secret|secrets|token|tokens'
/** Number of letters of the longest word. */
const LONGEST: i32 = 13

/** Returns whether the letters `start`..`end` are a word of the list, or have one as a part of a name in camel case. */
export function isSecretWord(text: usize, start: i32, end: i32): bool {
  // In `clientSecretKey`, a part begins at an upper-case letter after a lower-case letter.
  let from = start
  for (let i = start + 1; i <= end; i++) {
    const isPart = i == end || (load<u8>(text + i) < 97 && load<u8>(text + i - 1) >= 97)
    if (!isPart) continue
    if (isWordOfList(text, from, i)) return true
    from = i
  }
  return false
}

function isWordOfList(text: usize, start: i32, end: i32): bool {
  if (end - start < 3 || end - start > LONGEST) return false
  let at = start
  let isSame = true
  for (let i = 0; i < WORDS.length; i++) {
    const letter = <u32>WORDS.charCodeAt(i)
    if (letter == 124) {
      if (isSame && at == end) return true
      at = start
      isSame = true
      continue
    }
    isSame = isSame && at < end && (<u32>load<u8>(text + at) | 32) == letter
    at++
  }
  return isSame && at == end
}
