/** Decodes bodies of clients and providers. */

import { LlmError } from '../../../../engines/messages/llm-error.ts'
import { CodingProblem, decodeContent } from '../../../../ground/base/content-coding.ts'

/** HTTP status of each problem, by the author of the body. */
const statusByAuthor = {
  client: { unknown: 415, damaged: 400, tooLarge: 413 },
  provider: { unknown: 502, damaged: 502, tooLarge: 502 },
}

/** Returns the bytes themselves if they are not encoded. @throws LlmError if a coding is unknown, the body is damaged, or the decoded body exceeds `limit`. */
export function decodeBody(
  bytes: Uint8Array,
  coding: string | undefined,
  limit: number,
  author: keyof typeof statusByAuthor,
): Uint8Array | Promise<Uint8Array> {
  return coding === undefined ? bytes : decode(bytes, coding, limit, author)
}

async function decode(
  bytes: Uint8Array,
  coding: string,
  limit: number,
  author: keyof typeof statusByAuthor,
): Promise<Uint8Array> {
  const decoded = await decodeContent(bytes, coding, limit)
  if (!(decoded instanceof CodingProblem)) return decoded
  throw new LlmError(statusByAuthor[author][decoded.kind], decoded.message)
}
