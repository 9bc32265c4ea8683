/** Documents in requests that guards read by their bytes, whatever their type and name. */
import { beforeEach, describe, expect, it } from 'vitest'
import { reached, routes, useFleet } from '../support/vendors/fleet.ts'

const secrets = [{ regex: { matches: ['SECRET[0-9]+'] } }]
const fleet = useFleet(({ at }) => [
  reached('a', { vendorA: {}, ...at('a') }, { ai: { routes, promptGuard: { request: secrets } } }),
  reached(
    'f',
    { vendorF: { region: 'us-east-1' }, ...at('f') },
    { ai: { promptGuard: { request: secrets } } },
  ),
])
beforeEach(() => fleet.forget())

const chat = '/v1/chat/completions'
const send = (name: string, path: string, body: object) =>
  fetch(`${fleet.base(name)}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
const user = (content: unknown) => ({ model: 'm-1', messages: [{ role: 'user', content }] })
const sentTo = (vendor: 'a') => fleet.vendors[vendor].calls.map(({ text }) => text).join('\n')
const base64 = (text: string) => Buffer.from(text).toString('base64')

describe('request guards', () => {
  it.each([
    ['a.py', ''],
    ['a.jsonl', 'data:application/x-ndjson;base64,'],
    ['a.eml', 'data:message/rfc822;base64,'],
    ['a.sql', 'data:application/octet-stream;base64,'],
    ['a.txt', 'data:image/png;base64,'],
    [undefined, 'data:image/svg+xml;x=y;base64,'],
    [undefined, 'data:application/xhtml+xml;base64,'],
    [undefined, ''],
  ])('read the file %s with the beginning %j if its bytes are text', async (filename, prefix) => {
    const file = (data: string) => [{ type: 'file', file: { filename, file_data: prefix + data } }]
    await (await send('a', chat, user(file(base64('my SECRET1'))))).text()
    expect(sentTo('a')).toContain(base64('my <masked>'))
    // Guards cannot read what another decoder may read.
    const others = [
      base64('my SECRET1').replace('b', 'b\n'),
      base64('my SECRET1!').replace('=', ''),
      Buffer.from('my SECRET1', 'utf16le').toString('base64'),
      Buffer.from('m\u00fc SECRET1', 'latin1').toString('base64'),
    ]
    for (const data of others) expect((await send('a', chat, user(file(data)))).status).toBe(400)
    expect(fleet.vendors.a.calls).toHaveLength(1)
  })

  it('read data URLs that are not base64, in whole and in streamed requests', async () => {
    const svg = (text: string) => `<svg><text fill="#fff">${text}</text></svg>`
    const masked = encodeURIComponent(svg('my <masked>'))
    const urls = [
      `data:image/svg+xml;utf8,${svg('my SECRET1')}`,
      `data:image/svg+xml,${encodeURIComponent(svg('my SECRET1'))}`,
      `data:,${svg('my %53ECRE%541')}`,
      ` DATA:image/svg+xml;charset=utf-8,${svg('my SECRET%31')}`,
      `data:application/octet-stream,${svg('my SECRET1')}`,
    ]
    const inUrl = (url: string) => ({ type: 'image_url', image_url: { url } })
    for (const stream of [false, true]) {
      for (const url of urls) {
        for (const part of [inUrl(url), { type: 'file', file: { file_data: url } }]) {
          const answer = await send('a', chat, { ...user([part]), stream })
          expect([answer.status, await answer.text()], url).toEqual([200, expect.any(String)])
          expect(fleet.lastCall('a')?.text).toContain(url.replace(/,.*$/s, `,${masked}`))
        }
      }
      const sent = fleet.vendors.a.calls.length
      const unreadable = [
        `data:image/svg+xml,${svg('SEC\nRET1')}`,
        'data:image/svg+xml,%ff',
        `data:image/svg+xml;base64,%53${base64('my SECRET1')}`,
      ]
      for (const url of unreadable) {
        const answer = await send('a', chat, { ...user([inUrl(url)]), stream })
        expect([answer.status, await answer.text()], url).toEqual([
          400,
          expect.stringContaining('a text document must be UTF-8'),
        ])
      }
      expect(fleet.vendors.a.calls).toHaveLength(sent)
      const passed = ['data:image/png,%ff%00SECRET1', `data:image/svg+xml,${svg('%zz 100%')}`]
      for (const url of passed) {
        await (await send('a', chat, { ...user([inUrl(url)]), stream })).text()
        expect(fleet.lastCall('a')?.text).toContain(JSON.stringify(url))
      }
    }
  })

  it('read documents of Converse by their bytes', async () => {
    const path = '/model/amazon.nova-lite-v1:0/converse'
    const document = (format: string, bytes: string) => {
      const source = { bytes }
      const content = [{ text: 'Read' }, { document: { name: 'a', format, source } }]
      return { messages: [{ role: 'user', content }], inferenceConfig: { maxTokens: 50 } }
    }
    const text = base64('my SECRET1')
    const formats = ['txt', 'doc', 'docx', 'xls', 'xlsx', 'odt', 'PDF']
    for (const format of formats) await (await send('f', path, document(format, text))).text()
    const sent = () => fleet.vendors.f.calls.map((call) => call.text).join('\n')
    expect(sent()).not.toContain(text)
    const zip = Buffer.from('PK\x03\x04\0 SECRET1', 'latin1').toString('base64')
    const pdf = base64('%PDF-1.4 SECRET1')
    await (await send('f', path, document('docx', zip))).text()
    await (await send('f', path, document('pdf', pdf))).text()
    for (const passed of [zip, pdf]) expect(sent()).toContain(passed)
  })

  it('pass binary files, and read a file that is no base64 as it is', async () => {
    const file = (file_data: string, filename?: string) =>
      user([{ type: 'file', file: { filename, file_data } }])
    const png = Buffer.from('\x89PNG\r\n\x1a\n\0\0\0\rIHDR SECRET1', 'latin1').toString('base64')
    const pdf = base64('%PDF-1.4 SECRET1')
    const passed = [file(png), file(png, 'a.png'), file(pdf), file(pdf, 'a.pdf')]
    for (const body of passed) expect((await send('a', chat, body)).status).toBe(200)
    expect(sentTo('a').split(png)).toHaveLength(3)
    expect(sentTo('a').split(pdf)).toHaveLength(3)
    await (await send('a', chat, file('my SECRET1.'))).text()
    expect(sentTo('a')).toContain('my <masked>.')
  })
})
