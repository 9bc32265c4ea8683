import { describe, expect, it } from 'vitest'
import type { ReadRouteType } from '../route-type.ts'
import { ClientBody } from './client-body.ts'

const fieldsOf = (body: object | string, route: ReadRouteType = 'Completions') => {
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  return new ClientBody(Buffer.from(text), route).fieldsToPassOn(route)
}

const user = { role: 'user', content: 'Hello' }
const callOf = (id: string) => ({ id, type: 'function', function: { name: 'a', arguments: '{}' } })
const completions = (...messages: object[]) => ({ model: 'm', messages })
const partOf = (url: string) => ({
  role: 'user',
  content: [{ type: 'image_url', image_url: { url } }],
})

describe('the body of a request to a model', () => {
  it('can be passed on with its model and parameters known', () => {
    const body = { ...completions(user), temperature: 0.5, max_tokens: 7, tools: [{}] }
    expect(fieldsOf(body)).toEqual({ model: 'm', temperature: 0.5, max_tokens: 7 })
  })

  it('can be passed on with valid ids of tool calls and with images', () => {
    const call = { role: 'assistant', tool_calls: [callOf('call_1')] }
    const result = { role: 'tool', tool_call_id: 'call_1', content: 'x' }
    const image = partOf('data:image/jpeg;base64,AA')
    expect(fieldsOf(completions(user, call, result, image))).toEqual({ model: 'm' })
  })

  it.each([
    ['an id that is too long', completions({ tool_calls: [callOf('a'.repeat(41))] })],
    ['an id with other characters', completions({ role: 'tool', tool_call_id: 'a.b' })],
    ['an id with a signature', completions({ tool_calls: [callOf('a__thought__b')] })],
    ['thinking of this gateway', completions({ role: 'assistant', thinking_blocks: [] })],
    ['a wrong media type', completions(partOf('data:image/jpg;base64,AA'))],
    ['a wrong media type in capitals', completions(partOf('DATA:IMAGE/JPG,AA'))],
  ])('must be read as a whole if it has %s', (_, body) => {
    expect(fieldsOf(body)).toBeUndefined()
  })

  it.each([
    ['a key with an escape', '{"model":"a","mod\\u0065l":"b","messages":[]}'],
    ['a media type with an escape', '{"model":"a","messages":[{"url":"data:image\\/jpg;"}]}'],
  ])('must be read as a whole if it has %s', (_, body) => {
    expect(fieldsOf(body)).toBeUndefined()
  })

  it('must be read as a whole if it has reasoning of this gateway', () => {
    const body = (content: string) => ({ model: 'm', input: [{ encrypted_content: content }] })
    expect(fieldsOf(body('sluice.e30'), 'Responses')).toBeUndefined()
    expect(fieldsOf(body('gAAAA'), 'Responses')).toEqual({ model: 'm' })
  })

  it('must be read as a whole if it has thinking in the format of messages', () => {
    const body = (part: object) => ({ model: 'm', messages: [{ content: [part] }] })
    expect(fieldsOf(body({ type: 'thinking', signature: '' }), 'Messages')).toBeUndefined()
    expect(fieldsOf({ ...body({}), thinking: { type: 'enabled' } }, 'Messages')).toBeUndefined()
    expect(fieldsOf(body({ type: 'tool_use', id: 'toolu_1' }), 'Messages')).toEqual({ model: 'm' })
  })

  it('is refused if it is not UTF-8 or not a JSON object', () => {
    const bodyOf = (bytes: Buffer) => () => new ClientBody(bytes, 'Completions')
    expect(bodyOf(Buffer.from('{"model":"\xff"}', 'latin1'))).toThrow('the body is not JSON')
    expect(bodyOf(Buffer.from('{"model":"a"'))).toThrow('the body is not JSON')
    expect(bodyOf(Buffer.from('["a"]'))).toThrow('the body is not a JSON object')
  })

  it('gets another model in place of its own', () => {
    const body = new ClientBody(Buffer.from('{"a":"é", "model" : "b" ,"c":1}'), 'Completions')
    expect(body.withModel('x"y')?.toString()).toBe('{"a":"é", "model" : "x\\"y" ,"c":1}')
  })

  it('is written again for another model if it has none or several', () => {
    for (const text of ['{"a":1}', '{"model":"a","model":"b"}']) {
      expect(new ClientBody(Buffer.from(text), 'Completions').withModel('x')).toBeUndefined()
    }
  })
})
