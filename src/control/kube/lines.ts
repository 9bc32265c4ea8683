import { GrowingBytes } from '../../ground/base/growing-bytes.ts'

const newline = 0x0a
/** Maximum length of a line in bytes, far above what an API server accepts for an object. */
const maxLineBytes = 64 * 1024 * 1024

/** Yields the non-empty lines of a byte stream without their ends. A line may arrive in several pieces. */
export async function* linesOf(stream: AsyncIterable<unknown>): AsyncGenerator<string> {
  const begun = new GrowingBytes()
  for await (const chunk of stream) {
    const bytes = chunk as Buffer
    let from = 0
    for (let at = bytes.indexOf(newline); at >= 0; at = bytes.indexOf(newline, from)) {
      begun.add(bytes, from, at)
      const line = begun.content.toString()
      begun.clear()
      from = at + 1
      if (line !== '') yield line
    }
    begun.add(bytes, from, bytes.length)
    if (begun.length > maxLineBytes) throw new Error(`a line has more than ${maxLineBytes} bytes`)
  }
}
