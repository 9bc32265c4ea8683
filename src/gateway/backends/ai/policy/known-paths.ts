/** Endings of paths in the APIs of vendors, by which the gateway recognizes the format of requests that no type is mapped to. */
import type { ErrorForm } from '../../../../engines/messages/format.ts'
import { completions } from '../../../../engines/messages/formats/completions/index.ts'
import {
  clientFormats,
  type ReadRouteType,
  type RouteType,
} from '../../../../engines/messages/formats/index.ts'
import {
  ownCollections,
  storedCollections,
} from '../../../../engines/messages/stored/collections.ts'

/** The form in which clients of an API expect errors. */
export type ErrorFormName = ErrorForm['name'] | 'ollama'

export interface KnownPath {
  readonly ending: string
  /** The type that can be mapped to the ending; undefined if the gateway does not read the format. */
  readonly type: RouteType | undefined
  /** True if requests have the type unless the policy maps other paths. */
  readonly isDefault: boolean
  readonly errors: ErrorFormName
}

type AnyFormat = (typeof clientFormats)[ReadRouteType]

const pathsOf = ({ endings, name, errors }: AnyFormat): KnownPath[] =>
  endings.map((ending) => ({ ending, type: name, isDefault: true, errors: errors.name }))

const [chatEnding] = completions.endings
/** Paths of chat completions, by far the most frequent ones. */
const [chat] = pathsOf(completions)

/** A path of one model, whose name may have any characters. */
const oneModel = /\/v1(?:beta)?\/models\/./

const modelPath: KnownPath = {
  ending: '/models',
  type: 'Models',
  isDefault: true,
  errors: 'openai',
}

/** Paths of collections of stored things; Azure has some of them without a version. */
const collections: readonly KnownPath[] = ownCollections.flatMap((name) =>
  ['v1', 'openai'].map(
    (above): KnownPath => ({
      ending: `/${above}/${name}`,
      type: storedCollections[name].type,
      isDefault: true,
      errors: storedCollections[name].errors,
    }),
  ),
)

const mappable: readonly KnownPath[] = [
  ...Object.values(clientFormats).flatMap(pathsOf),
  modelPath,
  ...collections,
  // Guards do not read sessions, so that they must be mapped.
  { ending: '/realtime', type: 'Realtime', isDefault: false, errors: 'openai' },
]

/** Endings of formats that no type reads, by the form of errors. */
const unread: Readonly<Record<ErrorFormName, readonly string[]>> = {
  openai: [
    '/v1/assistants',
    '/v1/fine_tuning/jobs',
    '/v1/threads',
    '/v1/uploads',
    '/v1/vector_stores',
    '/v1/videos',
  ],
  anthropic: ['/v1/complete'],
  google: [
    ':asyncbatchembedcontent',
    ':batchgeneratecontent',
    ':predict',
    ':rawpredict',
    ':streamrawpredict',
  ],
  bedrock: ['/count-tokens'],
  ollama: ['/api/generate', '/api/embed'],
}

/** Paths of what vendors store and the gateway does not serve, by the form of errors. The first one that matches counts. */
const kept: readonly (readonly [errors: ErrorFormName, path: RegExp])[] = [
  ['anthropic', /\/v1\/(?:messages\/batches|skills|agents|sessions|environments)(?:\/|$)/],
  [
    'openai',
    /\/(?:v1|openai)\/(?:chat\/completions|assistants|batches|chatkit|containers|evals|files|fine_tuning|organization|realtime|threads|uploads|vector_stores|videos)\/./,
  ],
  ['openai', /\/(?:responses|conversations)\/./],
  [
    'google',
    /\/v1(?:beta|alpha)?\/(?:cachedcontents|corpora|files|filesearchstores|operations|batches|tunedmodels)(?:\/|$)/,
  ],
  ['bedrock', /\/(?:async-invoke|guardrail|model-invocation-job)s?(?:\/|$)/],
]

const known: readonly KnownPath[] = [
  ...mappable,
  ...Object.entries(unread).flatMap(([errors, endings]) =>
    endings.map((ending) => ({
      ending,
      type: undefined,
      isDefault: false,
      errors: errors as ErrorFormName,
    })),
  ),
].sort((a, b) => b.ending.length - a.ending.length)

/** Returns what a path in plain form is in the APIs of vendors, by its longest known ending. */
export function knownPathOf(plain: string): KnownPath | undefined {
  if (plain.endsWith(chatEnding)) return chat
  const found = known.find(({ ending }) => plain.endsWith(ending))
  return found ?? (oneModel.test(plain) ? modelPath : keptPathOf(plain))
}

export function keptPathOf(plain: string): KnownPath | undefined {
  const found = kept.find(([, path]) => path.test(plain))
  return found && { ending: plain, type: undefined, isDefault: false, errors: found[0] }
}
