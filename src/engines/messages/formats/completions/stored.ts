/** Where chat completions have ids of what the provider stores: files, and answers in sound. */
import { field, isObject, type JsonObject, mapField, objectAt, stringAt } from '../../json/json.ts'
import { needNames } from '../../json/names.ts'
import { notOfClients, openFiles } from '../../stored/members.ts'
import type { IdOpener, SealId } from '../../stored/stored-ids.ts'

/** Whether a request asks for an answer in sound, which later requests name by its id. */
export const asksForSound = ({ audio, modalities }: JsonObject): boolean =>
  audio != null || (Array.isArray(modalities) && modalities.includes('audio'))

/** Maps the id of the sound in a message or in a piece of one. */
const mapSound = (message: JsonObject, map: (id: string) => string): JsonObject =>
  mapField(message, 'audio', (audio) => {
    const id = stringAt(audio, 'id')
    return id === undefined || !isObject(audio) ? audio : { ...audio, id: map(id) }
  })

const requestNames = new Set(['messages', 'audio'])
const messageNames = new Set(['audio'])
const soundNames = new Set(['id'])

/** @throws LlmError 400 if an answer in sound names a voice by an id of the provider */
export function needNoVoice(holder: JsonObject | undefined, param: string): void {
  const voice = field(holder, 'voice')
  if (isObject(voice)) throw notOfClients(param)
}

/** Opens the ids in a request. Returns the same object if there are none. @throws StoredNotFoundError */
export function openCompletions(body: JsonObject, ids: IdOpener): JsonObject {
  needNames(body, requestNames)
  const { messages } = body
  needNoVoice(objectAt(body, 'audio'), 'audio.voice.id')
  if (!Array.isArray(messages)) return body
  const opened = messages.map((message, at) => {
    const path = `messages[${at}]`
    const withFiles = openFiles(message, ids, path)
    if (!isObject(withFiles)) return withFiles
    needNames(withFiles, messageNames)
    const sound = objectAt(withFiles, 'audio')
    if (sound !== undefined) needNames(sound, soundNames)
    return mapSound(withFiles, (id) => ids.need('audio', id, `${path}.audio.id`))
  })
  const isSame = opened.every((message, at) => message === messages[at])
  return isSame ? body : { ...body, messages: opened }
}

/** Seals the ids in a response, or in an event of a stream. */
export const sealCompletions = (body: JsonObject, seal: SealId): JsonObject =>
  mapField(body, 'choices', (choice) => {
    if (!isObject(choice)) return choice
    const sealed = (message: unknown) =>
      isObject(message) ? mapSound(message, (id) => seal('audio', id)) : message
    return mapField(mapField(choice, 'message', sealed), 'delta', sealed)
  })
