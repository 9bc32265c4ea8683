/** Bodies without their content coding, as expressions read them. */

import { CelError } from '../../engines/cel/index.ts'
import {
  CodingProblem,
  decodeContent,
  decodeContentSync,
} from '../../ground/base/content-coding.ts'
import type { BufferedBody, HeaderFields } from '../../ground/exchange/exchange.ts'

type Decoded = Uint8Array | CelError

interface DecodedBody {
  readonly coding: string
  readonly content: Decoded
}

/** By the encoded bytes, so that several expressions do not decode one body again. */
const known = new WeakMap<Uint8Array, DecodedBody>()

/** Decodes a body in memory ahead of expressions that read it. Returns undefined if it is not encoded. */
export function decodeAhead(
  body: BufferedBody,
  headers: HeaderFields,
  limit: number,
): Promise<unknown> | undefined {
  const coding = codingOf(headers)
  if (coding === undefined || !body.complete) return undefined
  const { bytes } = body
  if (known.get(bytes)?.coding === coding) return undefined
  return decodeContent(bytes, coding, limit).then((result) => keep(bytes, coding, result))
}

/** Returns the value of Content-Encoding; undefined if there is none. */
export function codingOf(headers: HeaderFields): string | undefined {
  const lines = headers.lines('content-encoding')
  return typeof lines === 'object' ? lines.join(',') : lines
}

/** Returns the decoded bytes, or an error of kind `limit` or `value`. */
export function decodedBytes(bytes: Uint8Array, coding: string, limit: number): Decoded {
  const found = known.get(bytes)
  return found?.coding === coding
    ? found.content
    : keep(bytes, coding, decodeContentSync(bytes, coding, limit))
}

function keep(bytes: Uint8Array, coding: string, result: Uint8Array | CodingProblem): Decoded {
  const content =
    result instanceof CodingProblem
      ? new CelError(result.kind === 'tooLarge' ? 'limit' : 'value', result.message)
      : result
  known.set(bytes, { coding, content })
  return content
}
