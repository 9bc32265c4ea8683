/** Endings of paths in the APIs of vendors, by which the gateway recognizes requests in a format that no type is mapped to. */
import type { RouteType } from '../../../../engines/messages/route-type.ts'

/** The form in which clients of an API expect errors. */
export type ErrorForm = 'openai' | 'anthropic' | 'google' | 'bedrock' | 'ollama'

export interface KnownPath {
  readonly ending: string
  /** The type that can be mapped to the ending; undefined if the gateway does not read the format. */
  readonly type: RouteType | undefined
  readonly errors: ErrorForm
}

/** Paths of chat completions, by far the most frequent ones. */
const chat: KnownPath = { ending: '/chat/completions', type: 'Completions', errors: 'openai' }

const mappable: readonly KnownPath[] = [
  chat,
  { ending: '/v1/messages', type: 'Messages', errors: 'anthropic' },
  { ending: '/messages/count_tokens', type: 'VendorCTokenCount', errors: 'anthropic' },
  { ending: '/responses', type: 'Responses', errors: 'openai' },
  { ending: '/embeddings', type: 'Embeddings', errors: 'openai' },
  { ending: '/models', type: 'Models', errors: 'openai' },
  { ending: '/realtime', type: 'Realtime', errors: 'openai' },
]

/** Endings of formats that no type reads, by the form of errors. */
const unread: Readonly<Record<ErrorForm, readonly string[]>> = {
  openai: [
    '/completions',
    '/responses/compact',
    '/responses/input_tokens',
    '/moderations',
    '/images/generations',
    '/images/edits',
    '/images/variations',
    '/audio/speech',
    '/audio/transcriptions',
    '/audio/translations',
    '/rerank',
    '/v1/assistants',
    '/v1/batches',
    '/v1/conversations',
    '/v1/files',
    '/v1/fine_tuning/jobs',
    '/v1/threads',
    '/v1/uploads',
    '/v1/vector_stores',
    '/v1/videos',
  ],
  anthropic: ['/v1/complete', '/v1/messages/batches'],
  google: [
    ':generatecontent',
    ':streamgeneratecontent',
    ':counttokens',
    ':embedcontent',
    ':batchembedcontents',
    ':asyncbatchembedcontent',
    ':batchgeneratecontent',
    ':predict',
    ':rawpredict',
    ':streamrawpredict',
  ],
  bedrock: [
    '/converse',
    '/converse-stream',
    '/invoke',
    '/invoke-with-response-stream',
    '/count-tokens',
  ],
  ollama: ['/api/generate', '/api/embed'],
}

const known: readonly KnownPath[] = [
  ...mappable,
  ...Object.entries(unread).flatMap(([errors, endings]) =>
    endings.map((ending) => ({ ending, type: undefined, errors: errors as ErrorForm })),
  ),
].sort((a, b) => b.ending.length - a.ending.length)

/** Returns what a path in plain form is in the APIs of vendors, by its longest known ending. */
export function knownPathOf(plain: string): KnownPath | undefined {
  if (plain.endsWith(chat.ending)) return chat
  return known.find(({ ending }) => plain.endsWith(ending))
}
