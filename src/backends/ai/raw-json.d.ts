// Numbers as they stand in a text (ECMAScript, JSON.parse source text access), which the library of
// TypeScript does not have yet.
interface JSON {
  parse(
    text: string,
    reviver: (key: string, value: unknown, context: { source?: string }) => unknown,
  ): unknown
  rawJSON(text: string): object
  isRawJSON(value: unknown): boolean
}
