/** What commands do only if a person looks at a terminal: colors, and lines about long work. */
import { styleText } from 'node:util'

type Stream = NodeJS.WriteStream
type Style = Parameters<typeof styleText>[0]

const place = /^\S+:\d+:\d+:(?= )/gm
const label = /^(\S+:\d+:\d+: )?(error|warning|bug|sluice)(?=: )/gm

/** Paints text if the stream is a terminal, and NO_COLOR does not forbid it. */
export const paint = (style: Style, text: string, stream: Stream): string =>
  styleText(style, text, { stream })

/** Paints the labels at the beginning of lines, such as `warning`, and the places in files. */
export const paintLabels = (text: string, stream: Stream): string =>
  text
    .replace(label, (_, before: string = '', name: string) => {
      return `${before}${paint(name === 'warning' ? 'yellow' : 'red', name, stream)}`
    })
    .replace(place, (found) => paint('bold', found, stream))

const quietMs = 1_000
const intervalMs = 200

/**
 * Shows in a line of a terminal how many things have been done, until the work ends. Work of less than a second
 * shows nothing.
 * @param what the plural of what is counted, such as `events read`
 */
export async function withCount<Result>(
  what: string,
  work: (add: (more: number) => void) => Promise<Result>,
  stream: Stream = process.stderr,
): Promise<Result> {
  if (!stream.isTTY) return work(() => undefined)
  const clear = '\r\u001b[K'
  let done = 0
  let nextMs = performance.now() + quietMs
  let isShown = false
  try {
    return await work((more) => {
      done += more
      const now = performance.now()
      if (now < nextMs) return
      nextMs = now + intervalMs
      isShown = true
      stream.write(`${clear}${done.toLocaleString('en')} ${what}`)
    })
  } finally {
    if (isShown) stream.write(clear)
  }
}

/** Items between two calls of `add`. */
const stride = 500

/** Passes items on, and counts them. */
export async function* counted<Item>(
  items: AsyncIterable<Item> | Iterable<Item>,
  add: (more: number) => void,
): AsyncGenerator<Item> {
  let count = 0
  for await (const item of items) {
    if (++count % stride === 0) add(stride)
    yield item
  }
}
