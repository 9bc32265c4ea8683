/** The paths of requests, which have the model and the verb: `/v1beta/models/{model}:{verb}`. */
import type { PathFields } from '../../format.ts'
import { LlmError } from '../../llm-error.ts'

/** A collection of models. Publishers, whose names may be equal, have collections in Vertex AI, so the last one counts. */
const collections = /\/(models|tunedModels)(?=\/)/gi
const verbAtEnd = /:([a-z]+)\/?$/i

/** @throws LlmError 400 if the path names no model */
export function readGeneratePath(path: string, query: string | undefined): PathFields {
  const decoded = decodedPath(path)
  const ending = verbAtEnd.exec(decoded)
  const collection = [...decoded.matchAll(collections)].at(-1)
  if (ending === null || collection === undefined) throw noModel()
  const [, verb = ''] = ending
  const name = decoded.slice(collection.index + collection[0].length + 1, ending.index)
  if (name === '') throw noModel()
  const model = collection[1]?.toLowerCase() === 'tunedmodels' ? `tunedModels/${name}` : name
  const stream = verb.toLowerCase() === 'streamgeneratecontent'
  const isArray = stream && !/(?:^|&)(?:\$|%24)?alt=sse(?:&|$)/i.test(query ?? '')
  return { model, stream, ...(isArray && { framing: 'json-array' }) }
}

/** @throws LlmError 400 if the path is not encoded as URLs are */
export function decodedPath(path: string): string {
  try {
    return decodeURIComponent(path)
  } catch {
    throw noModel()
  }
}

export const noModel = (): LlmError => new LlmError(400, 'the path names no model')
