/** Paths of the formats of vendors A and C, without the beginning that servers choose. */
import type { RouteType } from '../../../../engines/messages/formats/index.ts'

const formatPaths: Readonly<Partial<Record<RouteType, string>>> = {
  Completions: '/chat/completions',
  Messages: '/messages',
  VendorCTokenCount: '/messages/count_tokens',
  Responses: '/responses',
  Embeddings: '/embeddings',
  TextCompletions: '/completions',
  Rerank: '/rerank',
  Images: '/images/generations',
  Speech: '/audio/speech',
  Moderations: '/moderations',
  Transcriptions: '/audio/transcriptions',
  Translations: '/audio/translations',
  ImageEdits: '/images/edits',
  ImageVariations: '/images/variations',
  Conversations: '/conversations',
  Files: '/files',
  Batches: '/batches',
  MessageBatches: '/messages/batches',
}

/** Returns the path of a format below a base path, such as `/v1`. */
export const formatPath = (type: string, base = '/v1'): string | undefined => {
  const path = (formatPaths as Readonly<Record<string, string | undefined>>)[type]
  return path && `${base}${path}`
}
