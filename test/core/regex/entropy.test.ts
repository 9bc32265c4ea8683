/** The builtin for secrets without a known form. Secrets are generated or joined from parts, so that scanners do not report this file. */
import { describe, expect, it } from 'vitest'
import { compileMask } from '../../../src/engines/core/regex-mask.ts'
import { Random } from '../../detectors/values.ts'

const outcome = compileMask([{ builtin: 'Secret', replacement: '#' }])
if (!outcome.ok) throw new Error(outcome.message)
const { mask } = outcome

const base62 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789'
const random = new Random(20261130)
const mixed = (length: number) => `${random.text(length - 4, base62)}a7Kq`
const hex = (length: number) => `${random.text(length - 4, '0123456789abcdef')}7b2e`
const [long, short, digest] = [mixed(40), mixed(20), hex(40)]
const uuid = `${hex(8)}-${hex(4)}-${hex(4)}-${hex(4)}-${hex(12)}`
const wrapped = 'aghoh8oubu1obin9Cagae0u'

/** The text before a secret, the secret, and the text after it. */
const secrets: readonly (readonly [string, string, string])[] = [
  ['', long, ''],
  ['it is ', long, ', or not'],
  ['a ', `${mixed(26)}==`, ' b'],
  ['REGISTRY_PASSWORD=', mixed(43), ''],
  ['password: ', wrapped, '\n'],
  ['"client_secret" : "', hex(64), '"'],
  ['"token = \\"', long, '\\""'],
  ['https://host/get?apikey=', short, '&lang=en'],
  ['<password>', short, '</password>'],
  ['let apiKey = "', hex(32), '"'],
  ['api_key: ', uuid, ''],
  ['my password for the server is ', mixed(16), '.'],
  ['the keys:\n', short, ''],
  ['Authorization: Bearer ', short, ''],
  ['aws_secret_access_key = ', `${mixed(20)}/${mixed(19)}`, ''],
]

/** Texts without secrets, from reports of false alarms of other tools and from our own. */
const others: readonly string[] = [
  `commit ${digest}`,
  `sha256:${hex(64)}`,
  `"integrity": "sha512-${mixed(86)}=="`,
  `example.com/x v1.0.0 h1:${mixed(43)}=`,
  `id ${uuid}`,
  `data:image/png;base64,${mixed(60)}`,
  `<img src="data:image/png;base64,${mixed(2000)}">`,
  `-----BEGIN CERTIFICATE-----\n${mixed(64)}\n${mixed(64)}\n${mixed(38)}==\n-----END`,
  `ssh-ed25519 AAAA${mixed(64)} ann@host`,
  `https://docs.example.com/d/${mixed(44)}/edit`,
  `key: fast, commit: ${digest}`,
  `the key commit is ${digest}`,
  `monkey: ${hex(32)}`,
  `tokenizationId: '${hex(32)}'`,
  'callFunctionCheckIfDataAlreadyExistsPerpetualSubinventory',
  'recallNoticesRecallBusinessUnits-validation-group-1297083594-1',
  'assignVariablesOjTabBar1482653721SelectedItem',
  "vaultKey: 'inf-vsqt-01-secret-id'",
  '"key": "ctrl+shift+down"',
  'MONGO_INITDB_ROOT_PASSWORD_FILE=/run/secrets/db_username2',
  'the token is x86_64-unknown-linux-gnu',
  'key: 20261130T120000Z',
  'password=hunter2',
  'keys 1234567890123456789012345',
  `pod web-5d9c8f7b6d-x2k4p-${random.text(8, 'abcdef0123456789')}`,
]

describe('the builtin of random tokens', () => {
  it.each(secrets)('masks a secret after %j, wherever a stream is cut', (before, secret, after) => {
    const text = `${before}${secret}${after}`
    const expected = `${before}#${after}`
    expect(mask.apply(text).text).toBe(expected)
    const bytes = Buffer.from(text)
    using stream = mask.stream()
    for (let cut = 0; cut <= bytes.length; cut++) {
      stream.restart()
      const first = stream.pushBytes(bytes.subarray(0, cut))
      const whole = Buffer.concat([first, stream.endBytes(bytes.subarray(cut))])
      expect(whole.toString(), `cut at ${cut}`).toBe(expected)
    }
    stream.restart()
    const pieces = [...bytes].map((byte) => stream.pushBytes(Uint8Array.of(byte)))
    expect(Buffer.concat([...pieces, stream.endBytes()]).toString()).toBe(expected)
  })

  it.each(others)('does not mask %j', (text) => {
    expect(mask.apply(text).text).toBe(text)
    expect(mask.apply(`first line\n${text}\nlast line`).count).toBe(0)
    using stream = mask.stream()
    const pieces = [...Buffer.from(text)].map((byte) => stream.pushBytes(Uint8Array.of(byte)))
    expect(Buffer.concat([...pieces, stream.endBytes()]).toString()).toBe(text)
  })

  it('gives the same result for random texts, however they are cut', () => {
    const parts = [
      ...['key', 'secret=', ': ', ' ', '\n', ',', '=', '==', '/', '-', 'sha512-', ';base64,'],
      ...['h1:', 'ab', 'AAAA', '9', 'password', '"', '.', 'é'],
    ]
    using stream = mask.stream()
    let found = 0
    for (let round = 0; round < 400; round++) {
      const text = Array.from({ length: 12 }, () =>
        random.below(3) > 0
          ? random.pick(parts)
          : mixed(random.pick([8, 16, 24, 64, 120, 127, 128, 129, 140, 300])),
      ).join('')
      const { text: whole, count } = mask.apply(text)
      found += count
      stream.restart()
      const out: Uint8Array[] = []
      let rest: Uint8Array = Buffer.from(text)
      while (rest.length > 0) {
        const size = 1 + random.below(random.pick([2, 30, 400]))
        out.push(stream.pushBytes(rest.subarray(0, size)))
        expect(stream.heldBytes).toBeLessThanOrEqual(mask.holdBytes ?? 0)
        rest = rest.subarray(size)
      }
      expect(Buffer.concat([...out, stream.endBytes()]).toString()).toBe(whole)
    }
    expect(found).toBeGreaterThan(100)
  })
})
