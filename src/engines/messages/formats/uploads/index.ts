/** Formats whose requests are files with text fields, which only providers with the same format serve. */
import type { Usage } from '../../chat.ts'
import { anyObject } from '../../common/shape.ts'
import { callsOf, countAt, kindsOf, usageOf } from '../../common/usage.ts'
import type { OtherFormat, Transcript } from '../../format.ts'
import {
  isObject,
  type JsonObject,
  listAt,
  numberAt,
  objectAt,
  stringAt,
  textsAt,
} from '../../json/json.ts'
import { asciiName } from '../../json/names.ts'
import { LlmError } from '../../llm-error.ts'
import { openFiles } from '../../stored/members.ts'
import { openAiErrors, openAiHeaders } from '../completions/index.ts'
import { images } from '../passed-on/index.ts'

const requests = {
  errors: openAiErrors,
  vendorHeaders: openAiHeaders,
  shape: anyObject,
  // There is no conversation.
  history: { settle: (body: JsonObject) => body, rules: {} },
  textMembers: ['prompt'],
  limitMembers: [],
  decidedMembers: [],
  hasFiles: true,
  // A file may come before the field `model`.
  hasDefaultModel: true,
  relaysOthers: true,
} as const

/** Reads the tokens of a transcription, or the seconds of audio that are billed. */
function readAudioUsage(usage: unknown): Usage | undefined {
  const seconds = numberAt(usage, 'seconds')
  if (stringAt(usage, 'type') === 'duration' && seconds !== undefined && seconds >= 0) {
    const calls = callsOf('audioSecond', Math.min(Math.ceil(seconds), Number.MAX_SAFE_INTEGER))
    return usageOf({ input: 0, output: 0, calls }, 'included')
  }
  const details = objectAt(usage, 'input_token_details')
  const counts = {
    input: countAt(usage, 'input_tokens'),
    output: countAt(usage, 'output_tokens'),
    kinds: kindsOf(details, objectAt(usage, 'output_token_details')),
  }
  return usageOf(counts, 'included')
}

const joined = (list: readonly unknown[], name: string, between: string): readonly string[] => {
  const text = list.flatMap((one) => textsAt(one, [name])).join(between)
  return text === '' ? [] : [text]
}

const eventTypes = {
  delta: 'transcript.text.delta',
  segment: 'transcript.text.segment',
  done: 'transcript.text.done',
}
const known: ReadonlySet<unknown> = new Set(Object.values(eventTypes))

const transcript: Transcript = {
  guardable: ['json', 'verbose_json', 'diarized_json', 'text'],
  texts: (response) => [
    stringAt(response, 'text') ?? '',
    // Segments begin with spaces where words do; those of some servers do not.
    ...joined(listAt(response, 'segments'), 'text', ''),
    ...joined(listAt(response, 'segments'), 'text', ' '),
    ...joined(listAt(response, 'words'), 'word', ' '),
    ...joined(listAt(response, 'logprobs'), 'token', ''),
    ...joined(listAt(response, 'deltas'), 'delta', ''),
  ],
  withText(response, text) {
    const { segments: _s, words: _w, logprobs: _l, deltas: _d, ...rest } = response
    return { ...rest, text }
  },
  joinEvents(events) {
    if (!events.every(({ type }) => known.has(type))) return undefined
    const ofType = (type: string) => events.filter((event) => event.type === type)
    const done = ofType(eventTypes.done).at(-1)
    return {
      ...done,
      segments: ofType(eventTypes.segment),
      deltas: ofType(eventTypes.delta),
      logprobs: events.flatMap((event) => listAt(event, 'logprobs')),
    }
  },
  eventsOf: ({ text, usage }) => [
    { type: eventTypes.delta, delta: text },
    { type: eventTypes.done, text, ...(isObject(usage) && { usage }) },
  ],
}

export const transcriptions: OtherFormat<'Transcriptions'> = {
  ...requests,
  name: 'Transcriptions',
  operation: 'transcription',
  endings: ['/audio/transcriptions'],
  canStream: true,
  readUsage: readAudioUsage,
  transcript,
  responseFields: [],
  hasResponse: ({ text }) => typeof text === 'string',
}

/** Transcriptions in English. */
export const translations: OtherFormat<'Translations'> = {
  ...transcriptions,
  name: 'Translations',
  operation: 'translation',
  endings: ['/audio/translations'],
  canStream: false,
}

const { readUsage, withoutTexts, responseFields, hasResponse } = images
const ofImages = { readUsage, responseFields, hasResponse, ...(withoutTexts && { withoutTexts }) }

/** Images of a JSON body may be files that the provider stores. */
const stored: OtherFormat<'ImageEdits'>['stored'] = {
  members: { any: [], texts: ['file_id'] },
  open(body, ids) {
    for (const name of Object.keys(body)) {
      if (!/\[file_id\]/.test(asciiName(name))) continue
      throw new LlmError(400, `${name}: files are named by their ids in a JSON body only`)
    }
    return openFiles(body, ids, '') as JsonObject
  },
  stores: () => false,
}

export const imageEdits: OtherFormat<'ImageEdits'> = {
  ...requests,
  ...ofImages,
  stored,
  name: 'ImageEdits',
  operation: 'image_edit',
  endings: ['/images/edits'],
  canStream: true,
}

export const imageVariations: OtherFormat<'ImageVariations'> = {
  ...requests,
  ...ofImages,
  name: 'ImageVariations',
  operation: 'image_edit',
  endings: ['/images/variations'],
  textMembers: [],
  canStream: false,
}
