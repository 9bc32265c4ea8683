/** What the responses format refuses of its input. */

type Fields = Record<string, unknown>

const listOf = (value: unknown): Fields[] => (Array.isArray(value) ? (value as Fields[]) : [])

/** Characters that an id of a call may have. */
const longestId = 64

/** What is wrong with the request; undefined if nothing is. */
export function checkResponses({ input }: Fields): string | undefined {
  const open = new Set<unknown>()
  for (const [at, { type, call_id: id, encrypted_content: sealed }] of listOf(input).entries()) {
    if (id !== undefined && String(id).length > longestId) {
      return `Invalid 'input[${at}].call_id': string too long`
    }
    if (type === 'reasoning' && !String(sealed).startsWith('gAAAA')) {
      return `input[${at}]: The encrypted content could not be verified`
    }
    if (type === 'function_call') open.add(id)
    if (type === 'function_call_output' && !open.delete(id)) {
      return `No tool call found for function call output with call_id ${String(id)}`
    }
  }
  const [left] = open
  return left === undefined ? undefined : `No tool output found for function call ${String(left)}`
}
