/**
 * Conversions between what clients and providers speak, as files. `requests/FORMAT-NAME.json` is
 * written for every provider format; `answers/FORMAT-NAME.json` and `streams/FORMAT-NAME.txt` are
 * written for every client. `UPDATE=1` writes the expected files again.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { ModelResponse, ResponseEvent } from '../../src/engines/messages/chat.ts'
import {
  type ChatFormatName,
  clientFormats,
  type ProviderFormatName,
  providerFormats,
} from '../../src/engines/messages/formats/index.ts'
import { SseDecoder, writeSse } from '../../src/engines/messages/framing/sse.ts'
import { LlmError } from '../../src/engines/messages/llm-error.ts'
import { translate } from '../../src/engines/messages/request/translation.ts'

const root = join(import.meta.dirname, 'conversions')
const isUpdate = process.env.UPDATE === '1'

const clients: readonly ChatFormatName[] = [
  'Completions',
  'Messages',
  'Responses',
  'GenerateContent',
  'Converse',
  'TextCompletions',
]
const providers: readonly ProviderFormatName[] = [
  'completions',
  'messages',
  'converse',
  'generate-content',
]
/** Those whose responses are read. */
const responding: readonly ProviderFormatName[] = [...providers, 'responses']

function ids(): () => string {
  let next = 0
  return () => String(++next).padStart(4, '0')
}

function expectFile(path: string, text: string): void {
  const full = join(root, path)
  if (isUpdate) {
    mkdirSync(dirname(full), { recursive: true })
    writeFileSync(full, text)
  }
  expect(text, path).toBe(existsSync(full) ? readFileSync(full, 'utf8') : undefined)
}

const pretty = (value: unknown) => `${JSON.stringify(value, undefined, 2)}\n`

const filesOf = (folder: string) =>
  readdirSync(join(root, folder), { withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ name }) => name)
    .sort()

/** `Completions-tools.json` -> its format. */
function formatOf<Format extends string>(file: string, formats: readonly Format[]): Format {
  const found = formats.find((format) => file.startsWith(`${format}-`))
  if (found === undefined) throw new Error(`${file} names no format`)
  return found
}

describe.each(filesOf('requests'))('the client request %s', (file) => {
  const client = clientFormats[formatOf(file, clients)]
  const body = JSON.parse(readFileSync(join(root, 'requests', file), 'utf8'))
  it.each(providers)('is translated for provider format %s', (provider) => {
    const written = () =>
      translate(client.readRequest(body), providerFormats[provider], { newId: ids() }).body
    let text: string
    try {
      text = pretty(written())
    } catch (error) {
      if (!(error instanceof LlmError)) throw error
      text = pretty({ refused: error.status, message: error.message })
    }
    expectFile(`requests/${file.replace('.json', '')}/${provider}.json`, text)
  })
})

const asked = { model: 'some-model', system: [], turns: [], tools: [], stream: true }
const context = (request = {}) => ({ created: 1_700_000_000, newId: ids(), request })

describe.each(filesOf('answers'))('the provider answer %s', (file) => {
  const provider = formatOf(file, responding)
  const body = JSON.parse(readFileSync(join(root, 'answers', file), 'utf8'))
  const read = (): ModelResponse =>
    translate(asked, providerFormats[provider], { newId: ids() }).readResponse(body)
  it.each(clients)('is translated for client format %s', (client) => {
    const written = clientFormats[client].writeResponse(read(), context())
    expectFile(`answers/${file.replace('.json', '')}/${client}.json`, pretty(written))
  })
})

describe.each(filesOf('streams'))('the provider stream %s', (file) => {
  const provider = formatOf(file, responding)
  const bytes = readFileSync(join(root, 'streams', file))

  /** Cut into pieces of a size, as a network does. */
  function events(size: number): ResponseEvent[] {
    const reader = translate(asked, providerFormats[provider], { newId: ids() }).reader()
    const decoder = new SseDecoder(1 << 20)
    const found: ResponseEvent[] = []
    for (let at = 0; at < bytes.length; at += size) {
      const piece = bytes.subarray(at, at + size)
      decoder.push(piece, (event) => void found.push(...reader.read(event)))
    }
    return [...found, ...reader.finish()]
  }

  it.each(clients)('is translated for client format %s', (client) => {
    const request = { stream_options: { include_usage: true } }
    const writer = clientFormats[client].writer(context(request))
    const all = events(bytes.length)
    const isClean = all.some(({ type }) => type === 'end')
    const written = [...all.flatMap((event) => writer.write(event)), ...writer.finish(isClean)]
    expectFile(`streams/${file.replace('.txt', '')}/${client}.txt`, written.map(writeSse).join(''))
  })

  it('is read the same however its bytes are split', () => {
    const whole = events(bytes.length)
    for (const size of [1, 2, 3, 7, 64]) expect(events(size)).toEqual(whole)
  })
})
