import { GrowingBytes } from '../base/growing-bytes.ts'

const newline = 0x0a
/** Far above what an API server takes for an object. */
const longestLine = 64 * 1024 * 1024

/** The lines of a stream of bytes, without their ends; a line may come in any number of pieces. */
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
    if (begun.length > longestLine) throw new Error(`a line has more than ${longestLine} bytes`)
  }
}
