/** Makes a request with many items of one kind. */
export type RequestBuilders = Readonly<Record<string, (n: number) => Record<string, unknown>>>

/** Makes the events of a stream with many items of one kind. */
export type StreamBuilders = Readonly<Record<string, (n: number) => string>>

export const times = <Item>(n: number, make: (at: number) => Item): Item[] =>
  Array.from({ length: n }, (_, at) => make(at))

export const user = { role: 'user', content: 'x' }

export const alternating = (n: number) => ({
  messages: times(n, (i) => ({ role: i % 2 ? 'assistant' : 'user', content: 'x' })),
})

export const data = (event: unknown) => `data: ${JSON.stringify(event)}\n\n`
