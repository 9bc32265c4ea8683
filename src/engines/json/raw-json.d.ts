// Types of "JSON.parse source text access" (ECMAScript), which gives access to numbers as they are written.
// TypeScript's library does not have them yet.
interface JSON {
  parse(
    text: string,
    reviver: (key: string, value: unknown, context: { source?: string }) => unknown,
  ): unknown
  rawJSON(text: string): object
  isRawJSON(value: unknown): boolean
}
