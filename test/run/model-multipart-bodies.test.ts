/** Multipart bodies that servers may read differently are refused, however they are cut. */
import { once } from 'node:events'
import { request as sendRequest } from 'node:http'
import { text } from 'node:stream/consumers'
import { describe, expect, it } from 'vitest'
import {
  boundary,
  disposition,
  filePart,
  fleet,
  last,
  model,
  part,
  sent,
  ssn,
  transcribed,
} from './model-uploads-rig.ts'

/** Sends bytes in pieces of this size. */
async function post(
  name: string,
  body: string,
  size = body.length,
  type = `multipart/form-data; boundary=${boundary}`,
) {
  const client = sendRequest(`${fleet.base(name)}/v1/audio/transcriptions`, {
    method: 'POST',
    headers: { 'content-type': type, authorization: 'Bearer k' },
  })
  client.on('error', () => undefined)
  const answered = once(client, 'response')
  for (let at = 0; at < body.length; at += size) {
    client.write(body.slice(at, at + size), 'latin1')
    if (size < 100) await new Promise(setImmediate)
  }
  client.end()
  const [incoming] = await answered
  return { status: incoming.statusCode, text: await text(incoming) }
}

describe('a multipart body', () => {
  it('is read alike however it is cut', async () => {
    const prompt = part('prompt', `is ${ssn}`)
    const whole = `${model}${prompt}${filePart}${last}`
    for (const size of [1, 2, 7, 64, whole.length]) {
      transcribed({ text: 'Hello' })
      expect((await post('guarded', whole, size)).status).toBe(200)
      const { fields, contents } = (await sent()) ?? {}
      expect(fields).toEqual([
        ['model', 'whisper-1'],
        ['prompt', 'is <SSN>'],
      ])
      expect(String(contents?.[0])).toBe('sound')
    }
  })

  it.each([
    [
      'a second model',
      `${model}${part('model', 'gpt-4o-transcribe')}${filePart}${last}`,
      'model is repeated',
    ],
    [
      'a second model after the file',
      `${model}${filePart}${part('model', 'other')}${last}`,
      'model is repeated',
    ],
    [
      'a model in another case',
      `${part('Model', 'other')}${model}${filePart}${last}`,
      'must be model',
    ],
    ['a list of models', `${model}${filePart}${part('model[]', 'other')}${last}`, 'must be model'],
    [
      'a model that is a file',
      `${model}--${boundary}\r\n${disposition('model', '; filename="x"')}\r\n\r\nother\r\n${filePart}${last}`,
      'not a file',
    ],
    [
      'an escaped name',
      `${model}--${boundary}\r\nContent-Disposition: form-data; name="mo\\del"\r\n\r\nother\r\n${filePart}${last}`,
      'plain name',
    ],
    [
      'a name in another encoding',
      `${model}--${boundary}\r\nContent-Disposition: form-data; name*=utf-8''model\r\n\r\nother\r\n${filePart}${last}`,
      'part 2',
    ],
    [
      'a quote in a file name',
      `${model}--${boundary}\r\nContent-Disposition: form-data; filename="a\\"; name="model"\r\n\r\nother\r\n${filePart}${last}`,
      'part 2',
    ],
    [
      'two names',
      `${model}--${boundary}\r\n${disposition('x', '; name="model"')}\r\n\r\nother\r\n${filePart}${last}`,
      'part 2',
    ],
    [
      'a folded header',
      `${model}--${boundary}\r\nContent-Disposition: form-data;\r\n name="x"\r\n\r\nother\r\n${filePart}${last}`,
      'part 2',
    ],
    [
      'text in base64',
      `--${boundary}\r\n${disposition('model')}\r\nContent-Transfer-Encoding: base64\r\n\r\nd2hpc3Blci0x\r\n${filePart}${last}`,
      'must not be encoded',
    ],
    [
      'a boundary after a line feed alone',
      `${model}${filePart.trimEnd()}\n--${boundary}\r\n${disposition('model')}\r\n\r\nother\r\n${last}`,
      'carriage return',
    ],
    [
      'a boundary after a carriage return alone',
      `${model}${filePart.trimEnd()}\r--${boundary}\r\n${disposition('model')}\r\n\r\nother\r\n${last}`,
      'carriage return',
    ],
    [
      'a part without a line for its content',
      `${model}--${boundary}\r\n${disposition('x')}\r\n\r\n--${boundary}\r\n${last}`,
      'carriage return',
    ],
    [
      'a line that begins like the boundary',
      `${model}${filePart}--${boundary}x\r\n${last}`,
      'begins like one',
    ],
    [
      'something before the first boundary',
      `preamble\r\n${model}${filePart}${last}`,
      'must begin with the boundary',
    ],
    [
      'something after the last boundary',
      `${model}${filePart}${last}${model}`,
      'follows the last boundary',
    ],
    ['no last boundary', `${model}${filePart}`, 'ends before its last boundary'],
    ['no parts', '', 'ends before its last boundary'],
    ['a text that is not UTF-8', `${part('prompt', '\xff')}${model}${filePart}${last}`, 'UTF-8'],
  ])('is refused for %s, also if it comes byte by byte', async (_, body, message) => {
    for (const size of [body.length || 1, 1]) {
      const { status, text: answer } = await post('limited', body, size)
      expect([status, answer]).toEqual([400, expect.stringContaining(message)])
      expect(JSON.parse(answer).error.type).toBe('invalid_request_error')
    }
    expect(fleet.lastCall('a')).toBeUndefined()
  })

  it.each([
    'multipart/form-data',
    'multipart/mixed; boundary=a.boundary',
    'multipart/form-data; boundary=a.boundary; boundary=b',
    'multipart/form-data; boundary="a\\b"',
  ])('is refused for the type %s', async (type) => {
    const { status, text: answer } = await post('open', `${model}${filePart}${last}`, 1_000, type)
    expect([status, answer]).toEqual([400, expect.stringContaining('one boundary')])
  })

  it('has a bound for the fields before the first file', async () => {
    const { status } = await post('open', part('prompt', 'x'.repeat(1_100_000)), 65_536)
    expect(status).toBe(413)
  })
})
