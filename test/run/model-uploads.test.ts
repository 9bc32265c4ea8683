/** Requests with files: transcriptions and edits of images, whose files pass while they arrive. */
import { once } from 'node:events'
import { request as sendRequest } from 'node:http'
import { text } from 'node:stream/consumers'
import { describe, expect, it } from 'vitest'
import { openStream, sendEvent } from '../support/vendors/vendor.ts'
import {
  boundary,
  file,
  filePart,
  fleet,
  last,
  model,
  openai,
  sent,
  slow,
  sound,
  ssn,
  transcribed,
} from './model-uploads-rig.ts'

describe('a request with a file', () => {
  it('passes with the bytes of the file, whichever comes first', async () => {
    for (const isFileFirst of [true, false]) {
      transcribed({ text: 'Hello', usage: { type: 'tokens', input_tokens: 14, output_tokens: 45 } })
      const rest = { model: 'whisper-1', response_format: 'json' as const }
      const heard = await openai('open').audio.transcriptions.create(
        isFileFirst ? { file: await file(), ...rest } : { ...rest, file: await file() },
      )
      expect(heard.text).toBe('Hello')
      const { fields, contents, call } = (await sent()) ?? {}
      expect(fields).toEqual(Object.entries(rest))
      expect(contents).toEqual([sound])
      expect(call?.path).toBe('/v1/audio/transcriptions')
      expect(call?.headers.authorization).toBe('Bearer gateway-key')
    }
    await expect.poll(() => fleet.running.stdout).toMatch(/gen_ai.usage.input_tokens=14/)
    expect(fleet.running.stdout).toMatch(/gen_ai.operation.name=transcription/)
  })

  it('gets the model of the provider in place of its own, wherever the field is', async () => {
    for (const fields of [{ model: 'whisper-1' }, {}]) {
      transcribed({ text: 'Hello' })
      const body = { ...fields, file: await file(), ...(!('model' in fields) && { model: 'x' }) }
      await openai('pinned').audio.transcriptions.create(body as never)
      const seen = await sent()
      expect(seen?.fields).toEqual([['model', 'gpt-4o-transcribe']])
      expect(seen?.contents).toEqual([sound])
      const isKnown = seen?.call.headers['content-length'] !== undefined
      expect(isKnown).toBe('model' in fields)
    }
  })

  it('has fields that settings of the gateway change', async () => {
    transcribed({ text: 'Hello' })
    await openai('set').audio.transcriptions.create({
      model: 'fast',
      language: 'fr',
      file: await file(),
    })
    const seen = await sent()
    expect(Object.fromEntries(seen?.fields ?? [])).toEqual({
      model: 'whisper-1',
      language: 'de',
      temperature: '0.5',
    })
    expect(seen?.contents).toEqual([sound])
  })

  it('has a prompt that guards read', async () => {
    transcribed({ data: [{ b64_json: 'AA==' }] })
    await openai('guarded').images.edit({
      model: 'gpt-image-1',
      prompt: `draw ${ssn}`,
      image: await file(),
    })
    const seen = await sent()
    expect(seen?.fields).toEqual([
      ['model', 'gpt-image-1'],
      ['prompt', 'draw <SSN>'],
    ])
    expect(seen?.contents).toEqual([sound])
    expect(Number(seen?.call.headers['content-length'])).toBe(seen?.call.bytes.length)
  })

  it('is refused if guards would not see a field before the file', async () => {
    const late = openai('guarded').images.edit({ image: await file(), prompt: ssn })
    await expect(late).rejects.toMatchObject({
      status: 400,
      message: expect.stringContaining('the field prompt comes after a file'),
    })
    expect(fleet.lastCall('a')).toBeUndefined()
  })

  it('may only name models that the key may use, once and before the file', async () => {
    transcribed({ text: 'Hello' })
    const { transcriptions } = openai('limited').audio
    await transcriptions.create({ model: 'whisper-1', file: await file() })
    fleet.forget()
    await expect(
      transcriptions.create({ model: 'gpt-4o-transcribe', file: await file() }),
    ).rejects.toMatchObject({ status: 403 })
    await expect(
      transcriptions.create({ file: await file(), model: 'whisper-1' }),
    ).rejects.toMatchObject({
      status: 400,
      message: expect.stringContaining('the field model must come before the first file'),
    })
    expect(fleet.lastCall('a')).toBeUndefined()
  })

  it('is refused by vendors without its format', async () => {
    await expect(
      openai('c').audio.transcriptions.create({ model: 'm', file: await file() }),
    ).rejects.toMatchObject({ status: 400, message: expect.stringContaining('unsupported') })
  })
})

describe('a large file', () => {
  it('reaches the provider before all of it has arrived', async () => {
    const begin = `${model}${filePart.trimEnd().slice(0, -'sound'.length)}`
    const piece = Buffer.alloc(1_000_000, 'a')
    const pieces = 60
    const length = begin.length + pieces * piece.length + `\r\n${last}`.length
    const client = sendRequest(`${fleet.base('slow')}/v1/audio/transcriptions`, {
      method: 'POST',
      headers: {
        'content-type': `multipart/form-data; boundary=${boundary}`,
        'content-length': length,
      },
    })
    const answered = once(client, 'response')
    client.write(begin)
    client.write(piece)
    await expect.poll(() => slow.seen.bytes).toBeGreaterThan(piece.length - 1_000)
    expect(slow.seen.length).toBe(String(length))
    for (let at = 1; at < pieces; at++) {
      if (!client.write(piece)) await once(client, 'drain')
    }
    client.end(`\r\n${last}`)
    const [incoming] = await answered
    expect(JSON.parse(await text(incoming))).toEqual({ text: 'whole' })
    expect(slow.seen.bytes).toBe(length)
  })
})

describe('a transcript', () => {
  const mail = 'ann@example.com'

  it('is read by guards, with the pieces that repeat it', async () => {
    const pieces = { segments: [{ text: ' I am ann@' }, { text: 'example.com' }], words: [] }
    transcribed({ text: `I am ${mail}`, ...pieces, usage: { type: 'duration', seconds: 3 } })
    const fields = { model: 'whisper-1', response_format: 'verbose_json' as const }
    const heard = await openai('kept').audio.transcriptions.create({
      ...fields,
      file: await file(),
    })
    expect(heard).toEqual({ text: 'I am <EMAIL_ADDRESS>', usage: { type: 'duration', seconds: 3 } })
    transcribed({ text: 'I am Ann', ...pieces })
    const hidden = await openai('kept').audio.transcriptions.create({
      ...fields,
      file: await file(),
    })
    expect(JSON.stringify(hidden)).not.toContain('example.com')
    transcribed({ text: 'Hello', segments: [{ text: 'Hello' }] })
    expect(
      await openai('kept').audio.transcriptions.create({ ...fields, file: await file() }),
    ).toEqual({ text: 'Hello', segments: [{ text: 'Hello' }] })
  })

  it('is read as plain text, but not as subtitles', async () => {
    fleet.vendors.a.next.push((_, answer) => {
      answer.writeHead(200, { 'content-type': 'text/plain' })
      answer.end(`I am ${mail}\n`)
    })
    const { transcriptions } = openai('kept').audio
    const asText = { model: 'whisper-1', response_format: 'text' as const }
    expect(await transcriptions.create({ ...asText, file: await file() })).toBe(
      'I am <EMAIL_ADDRESS>\n',
    )
    await expect(
      transcriptions.create({ model: 'whisper-1', response_format: 'srt', file: await file() }),
    ).rejects.toMatchObject({ status: 400, message: expect.stringContaining('response_format') })
  })

  it.each(['open', 'kept'])('is streamed through the backend %s, with its usage', async (name) => {
    const usage = { type: 'tokens', input_tokens: 31, output_tokens: 5, total_tokens: 36 }
    fleet.vendors.a.next.push((_, answer) => {
      openStream(answer)
      for (const delta of ['I am ann@', 'example', '.com'])
        sendEvent(answer, { type: 'transcript.text.delta', delta })
      sendEvent(answer, { type: 'transcript.text.done', text: `I am ${mail}`, usage })
      answer.end()
    })
    const stream = await openai(name).audio.transcriptions.create({
      model: 'gpt-4o-transcribe',
      stream: true,
      file: await file(),
    })
    let heard = ''
    let whole = ''
    for await (const event of stream) {
      if (event.type === 'transcript.text.delta') heard += event.delta
      if (event.type === 'transcript.text.done') whole = event.text
    }
    const expected = name === 'open' ? `I am ${mail}` : 'I am <EMAIL_ADDRESS>'
    expect([heard, whole]).toEqual([expected, expected])
    await expect
      .poll(() => fleet.running.stdout.match(/gen_ai.usage.input_tokens=31/g)?.length)
      .toBe(name === 'open' ? 1 : 2)
  })
})
