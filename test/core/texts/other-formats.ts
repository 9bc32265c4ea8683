/** The cases of messages of another format, through hosts that requests are sent to: the gateway and the filter. */
import { describe, expect, it } from 'vitest'
import { readCaseFiles } from '../case-files.ts'
import type { Format } from './messages.ts'

interface FormatCase {
  readonly title: string
  readonly format: Format
  readonly message: 'request' | 'answer' | 'stream'
  readonly input: string
  readonly output?: string
}

interface FormatHost {
  /** Sends a request. `sent` is what the upstream got; undefined if nothing was sent. */
  request(path: string, body: string): Promise<{ status: number; sent: string | undefined }>
  /** Sends `asked`, to which the upstream answers with `body`. */
  answer(
    path: string,
    asked: string,
    body: string,
    type: string,
  ): Promise<{ status: number; text: string }>
  /** True if errors of the upstream reach the client in the form that the upstream sent. */
  readonly isRelayed: boolean
  /** Whether clients can continue only what belongs to them. */
  readonly sealsIds?: boolean
}

const paths: Readonly<Record<Format, string>> = {
  Completions: '/v1/chat/completions',
  Messages: '/v1/messages',
  Responses: '/v1/responses',
  Embeddings: '/v1/embeddings',
}

const chat = { model: 'm', messages: [{ role: 'user', content: 'hi' }] }
const asked: Readonly<Record<Format, object>> = {
  Completions: chat,
  Messages: { ...chat, max_tokens: 5 },
  Responses: { model: 'm', input: 'hi' },
  Embeddings: { model: 'm', input: 'hi' },
}

const [file] = readCaseFiles<FormatCase>('texts/cases').filter(
  ({ name }) => name === 'other-formats',
)
const cases = file?.cases ?? []

const withoutModel = (text = '{}') => ({ ...JSON.parse(text), model: undefined })

/** The guards of the host mask social security numbers with `<SSN>` in requests and answers. */
export function describeFormatCases(host: FormatHost): void {
  describe('on the cases of messages of another format', () => {
    const requests = cases.filter(({ message }) => message === 'request')
    it.each(requests)('$title', async ({ format, input, output }) => {
      const { status, sent } = await host.request(paths[format], input)
      const isContinued = host.sealsIds === true && input.includes('previous_response_id')
      if (output === undefined) expect([status, sent]).toEqual([400, undefined])
      else if (isContinued) expect([status, sent]).toEqual([404, undefined])
      else expect(withoutModel(sent)).toEqual(withoutModel(output))
    })

    const answers = cases.filter(({ message }) => message !== 'request')
    it.each(answers)('$title', async ({ format, message, input, output }) => {
      const isStream = message === 'stream'
      const body = JSON.stringify({ ...asked[format], ...(isStream && { stream: true }) })
      const type = isStream ? 'text/event-stream' : 'application/json'
      const { status, text } = await host.answer(paths[format], body, input, type)
      expect(text).not.toContain('123-45-6789')
      if (output === undefined) {
        if (!isStream) expect(status).toBeGreaterThanOrEqual(500)
        expect(text).toContain('error')
      } else if (host.isRelayed) expect([status, text]).toEqual([200, output])
      else expect(text).toMatch(/<SSN>|error|ping|DONE/)
    })
  })
}
