import { GrowingBytes } from '../base/growing-bytes.ts'

/** What a credential service may take to answer. */
export const patienceMs = 5_000
/** What it may answer. */
const mostBytes = 65_536

/** Text of an answer; rejects where it is none, or no success. Messages never hold the answer. */
export async function fetchText(
  what: string,
  url: string,
  init: RequestInit = {},
  waitMs = patienceMs,
): Promise<string> {
  const signal = AbortSignal.timeout(waitMs)
  const response = await fetch(url, { redirect: 'error', signal, ...init }).catch((cause) => {
    throw new Error(`${what} cannot be reached`, { cause })
  })
  const text = await readText(what, response)
  if (!response.ok) throw new Error(`${what} answered ${response.status}`)
  return text
}

/** Reads no more than it admits. */
async function readText(what: string, { body }: Response): Promise<string> {
  const bytes = new GrowingBytes()
  for await (const piece of body ?? []) {
    if (bytes.length + piece.length > mostBytes) throw new Error(`${what} answered too much`)
    bytes.add(piece, 0, piece.length)
  }
  return bytes.content.toString('utf8')
}

/** Fields of a JSON object; none where it is no such text. */
export function readFields(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
  } catch {
    return {}
  }
}
