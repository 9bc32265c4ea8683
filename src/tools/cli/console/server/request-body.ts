import type { IncomingMessage } from 'node:http'
import { fail, type Outcome, succeed } from '../../../../ground/base/outcome.ts'

/** Edited manifests are the largest bodies. */
const maxBytes = 8_000_000

interface BodyProblem {
  readonly status: number
  readonly message: string
}

/** Reads a JSON object of limited size. */
export async function readJsonBody(
  request: IncomingMessage,
): Promise<Outcome<Readonly<Record<string, unknown>>, BodyProblem>> {
  const pieces: Buffer[] = []
  let bytes = 0
  for await (const piece of request as AsyncIterable<Buffer>) {
    bytes += piece.length
    if (bytes > maxBytes) {
      return fail({ status: 413, message: `the body has more than ${maxBytes} bytes` })
    }
    pieces.push(piece)
  }
  try {
    const value: unknown = JSON.parse(Buffer.concat(pieces).toString())
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
      return succeed(value as Record<string, unknown>)
    }
  } catch {
    // Reported below.
  }
  return fail({ status: 400, message: 'the body is not a JSON object' })
}
