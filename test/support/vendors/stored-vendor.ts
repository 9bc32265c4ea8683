/** A simulator of what vendorA stores for each of its accounts: responses, conversations, files, batches and answers in sound. */
import type { ServerResponse } from 'node:http'
import { json, openStream, sendEvent, startVendor, type Vendor, type VendorCall } from './vendor.ts'
import { errorA, formOf } from './vendor-a.ts'

type Fields = Readonly<Record<string, unknown>>

export interface StoredVendor extends Vendor {
  /** Everything stored, by the id of the vendor. */
  readonly stored: Map<string, Fields>
}

/** Ids of the vendor have at most so many characters. */
const maxId = 64

/** Ids of what a request refers to, in any member. */
function idsIn(value: unknown): string[] {
  if (Array.isArray(value)) return value.flatMap(idsIn)
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([name, member]) => {
    const isId = /^(?:id|conversation|file_id|previous_response_id|input_file_id)$/.test(name)
    return isId && typeof member === 'string' ? [member] : idsIn(member)
  })
}

/** `name` is part of every id, so that a test sees whose it is. */
export async function startStoredVendor(name: string): Promise<StoredVendor> {
  const stored = new Map<string, Fields>()
  let count = 0
  const add = (prefix: string, fields: Fields): Fields => {
    const id = `${prefix}${name}${++count}`
    const made = { id, ...fields }
    stored.set(id, made)
    return made
  }
  const missing = ({ body, path }: VendorCall): string | undefined => {
    const inPath = path.split('?')[0]?.split('/').slice(3) ?? []
    const known = inPath.filter((part) => /[_-]/.test(part) && part !== 'input_items')
    const after = new URLSearchParams(path.split('?')[1]).get('after')
    const all = [...known, ...idsIn(body), ...(after === null ? [] : [after])]
    return all.find((id) => id.length > maxId || !stored.has(id))
  }
  const answer = async (call: VendorCall, response: ServerResponse) => {
    const { method, path, body } = call
    const [, collection = '', id, part, item] = path.split('?')[0]?.split('/').slice(1) ?? []
    if (method === 'DELETE' && item === undefined) {
      stored.delete(id ?? '')
      return json(response, 200, { id, object: 'deleted', deleted: true })
    }
    if (part === 'input_items' || (part === 'items' && item === undefined)) {
      const items = part === 'items' && method === 'POST' ? (body.items as Fields[]) : [{}]
      const data = items.map(() => add('msg_', { type: 'message', role: 'user', content: [] }))
      const ends = { first_id: data[0]?.id, last_id: data.at(-1)?.id, has_more: false }
      return json(response, 200, { object: 'list', data, ...ends })
    }
    if (item !== undefined) return json(response, 200, { ...stored.get(item) })
    if (part === 'content') return response.writeHead(200).end(`results of ${id}`)
    if (part === 'cancel')
      return json(response, 200, { ...stored.get(id ?? ''), status: 'cancelled' })
    if (collection === 'chat') return speak(call, response)
    if (collection === 'responses') return respond(call, id, response)
    if (id !== undefined) return json(response, 200, { ...stored.get(id) })
    if (collection === 'conversations') {
      return json(response, 200, add('conv_', { object: 'conversation', created_at: 1 }))
    }
    if (collection === 'files') {
      const file = (await formOf(call)).get('file') as File
      return json(
        response,
        200,
        add('file-', { object: 'file', filename: file.name, bytes: file.size }),
      )
    }
    const output = add('file-', { object: 'file', purpose: 'batch_output' })
    const batch = { object: 'batch', ...body, status: 'completed', output_file_id: output.id }
    return json(response, 200, add('batch_', batch))
  }
  const speak = ({ body }: VendorCall, response: ServerResponse) => {
    const sound = add('audio_', { data: 'AAAA', transcript: `I am ${name}`, expires_at: 9 })
    const { id, data, transcript, expires_at } = sound
    const head = { id: 'chatcmpl-1', created: 1, model: body.model }
    if (body.stream !== true) {
      const message = { role: 'assistant', content: null, refusal: null, audio: sound }
      const choices = [{ index: 0, message, finish_reason: 'stop' }]
      return json(response, 200, { ...head, object: 'chat.completion', choices })
    }
    openStream(response)
    const pieces = [{}, { transcript }, { data }, { data }, { expires_at }]
    const deltas = pieces.map((piece) => ({ audio: { id, ...piece } }))
    for (const delta of [{ role: 'assistant', content: null }, ...deltas, {}]) {
      const isLast = Object.keys(delta).length === 0
      const choices = [{ index: 0, delta, finish_reason: isLast ? 'stop' : null }]
      sendEvent(response, { ...head, object: 'chat.completion.chunk', choices })
    }
    sendEvent(response, '[DONE]')
    return response.end()
  }
  const respond = (
    { body, path }: VendorCall,
    id: string | undefined,
    response: ServerResponse,
  ) => {
    const isStream = body.stream === true || path.includes('stream=true')
    const item = add('msg_', {
      type: 'message',
      role: 'assistant',
      status: 'completed',
      content: [{ type: 'output_text', text: `I am ${name}`, annotations: [] }],
    })
    const { previous_response_id = null, conversation = null, model } = body
    const whole =
      id === undefined
        ? add('resp_', {
            ...{ object: 'response', created_at: 1, status: 'completed', model, error: null },
            ...{ previous_response_id, conversation: conversation && { id: conversation } },
            ...{ output: [item], usage: { input_tokens: 1, output_tokens: 2, total_tokens: 3 } },
          })
        : { ...stored.get(id) }
    if (!isStream) return json(response, 200, whole)
    const events = ['response.queued', 'response.created', 'response.in_progress']
    const at = { output_index: 0, content_index: 0, item_id: item.id }
    openStream(response)
    let sequence_number = 0
    const send = (type: string, fields: object) =>
      sendEvent(response, { type, sequence_number: sequence_number++, ...fields }, type)
    for (const type of events) send(type, { response: { ...whole, status: 'queued', output: [] } })
    send('response.output_item.added', { output_index: 0, item: { ...item, content: [] } })
    for (const delta of ['I ', 'am ', name, ' now'])
      send('response.output_text.delta', { ...at, delta })
    send('response.output_item.done', { output_index: 0, item })
    send('response.completed', { response: whole })
    return response.end()
  }
  const vendor = await startVendor(
    (call) => {
      const unknown = missing(call)
      return unknown === undefined
        ? undefined
        : { status: 404, message: `${name} stores nothing with the id ${unknown}` }
    },
    (call, response) => void answer(call, response),
    errorA,
  )
  return Object.assign(vendor, { stored })
}
