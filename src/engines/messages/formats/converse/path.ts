/** The paths of requests to vendor F, which have the model and the verb: `/model/{id}/{verb}`. */
import type { PathFields } from '../../format.ts'
import { decodedPath, noModel } from '../generate-content/path.ts'

const collection = /\/model\//i
const verbAtEnd = /\/([a-z-]+)\/?$/i

/** Verbs of streams. */
const streaming: ReadonlySet<string> = new Set(['converse-stream', 'invoke-with-response-stream'])

/** @throws LlmError 400 if the path names no model */
export function readModelPath(path: string): PathFields {
  const decoded = decodedPath(path)
  const [before, ending] = [collection.exec(decoded), verbAtEnd.exec(decoded)]
  if (before === null || ending === null) throw noModel()
  // The id may be an ARN, which has slashes.
  const model = decoded.slice(before.index + before[0].length, ending.index)
  if (model === '') throw noModel()
  const [, verb = ''] = ending
  return { model, stream: streaming.has(verb.toLowerCase()) }
}
