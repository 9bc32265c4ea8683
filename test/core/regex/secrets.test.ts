/** Builtins of account numbers, addresses and keys. The texts are made here, of parts, so that scanners of secrets pass them. */
import { createHash } from 'node:crypto'
import { afterAll, describe, expect, it } from 'vitest'
import { type Builtin, builtinReplacements } from '../../../src/engines/core/regex-builtins.ts'
import { compileMask } from '../../../src/engines/core/regex-mask.ts'
import fc from '../../support/fast-check.ts'

const names = ['Iban', 'IpAddress', 'ApiKey', 'PrivateKey'] as const

function maskOf(list: readonly Builtin[]) {
  const outcome = compileMask(
    list.map((builtin) => ({ builtin, replacement: builtinReplacements[builtin] })),
  )
  if (!outcome.ok) throw new Error(outcome.message)
  return outcome.mask
}

/** Characters of a key, the same in every run. */
function filler(
  length: number,
  alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789',
) {
  const bytes = Array.from({ length: Math.ceil(length / 32) }, (_, index) => [
    ...createHash('sha256').update(`${alphabet} ${index}`).digest(),
  ]).flat()
  return bytes
    .slice(0, length)
    .map((byte) => alphabet[byte % alphabet.length])
    .join('')
}
const upper = (length: number) => filler(length, 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567')
const hex = (length: number) => filler(length, '0123456789abcdef')

const base64url = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
const jwt = (header: object) => `${base64url(header)}.${base64url({ sub: 'ann' })}.${filler(43)}`

const lines = `${filler(64)}\n${filler(64)}\n${filler(20)}==`
const pem = (kind: string, body = `\n${lines}\n`) =>
  `-----BEGIN ${kind}PRIVATE ${'KEY'}-----${body}-----END ${kind}PRIVATE ${'KEY'}-----`

const found: Readonly<Record<(typeof names)[number], readonly string[]>> = {
  Iban: [
    'DE89370400440532013000',
    'DE89 3704 0044 0532 0130 00',
    'de89 3704 0044 0532 0130 00',
    'GB82-WEST-1234-5698-7654-32',
    'NO9386011117947',
    'NO93 8601 1117 947',
    'MT84 MALT 0110 0001 2345 MTLC AST0 01S',
    'FR14 2004 1010 0505 0001 3M02 606',
    'AT61 1904 3002 3457 3201',
    'CH93 0076 2011 6238 5295 7',
  ],
  IpAddress: [
    '10.0.0.1',
    '192.168.178.255',
    '2001:db8::1',
    'fe80::',
    'fe80::1ff:fe23:4567:890a',
    '2001:0DB8:0000:0000:0000:ff00:0042:8329',
    '::ffff:192.0.2.128',
    '64:ff9b::192.0.2.33',
    '1:2:3:4:5:6:7:8',
    '2345:0425:2CA1:0000:0000:0567:5673:23b5',
  ],
  ApiKey: [
    `sk-ant-api03-${filler(90)}AA`,
    `sk-proj-${filler(60)}_${filler(20)}`,
    `sk-${filler(48)}`,
    `sk-or-v1-${hex(64)}`,
    `AKIA${upper(16)}`,
    `ghp_${filler(36)}`,
    `ghs_${filler(36)}`,
    `github_pat_${filler(22)}_${filler(59)}`,
    `glpat-${filler(20)}`,
    `xoxb-${hex(12)}-${hex(12)}-${filler(24)}`,
    `hooks.slack.com/services/T${upper(8)}/B${upper(8)}/${filler(24)}`,
    `sk_live_${filler(24)}`,
    `rk_test_${filler(24)}`,
    `AIza${filler(35)}`,
    `GOCSPX-${filler(28)}`,
    `npm_${filler(36)}`,
    `pypi-AgEIcHlwaS5vcmc${filler(60)}`,
    `hf_${filler(34)}`,
    `gsk_${filler(52)}`,
    `xai-${filler(80)}`,
    `nvapi-${filler(64)}`,
    `dapi${hex(32)}`,
    `SG.${filler(22)}.${filler(43)}`,
    `dop_v1_${hex(64)}`,
    `shpat_${hex(32)}`,
    `hvs.${filler(24)}`,
    `glsa_${filler(32)}_${hex(8)}`,
    `PMAK-${hex(24)}-${hex(34)}`,
    `tskey-auth-${filler(30)}`,
    `sk-svcacct-${filler(40)}`,
    // Reported as missed by gitleaks (issues 2158, 1697 and 1366).
    `sk-ant-oat01-${filler(95)}`,
    `sk-ant-ort01-${filler(95)}`,
    `sgp_${hex(40)}`,
    `sgp_${hex(16)}_${hex(40)}`,
    `api-${[8, 4, 4, 4, 12].map(hex).join('-')}`,
    `sdk-${[8, 4, 4, 4, 12].map(hex).join('-')}`,
    `ASIA${upper(16)}`,
    `gldt-${filler(20)}`,
    `glagent-${filler(50)}`,
    `xoxe-1-${filler(40)}`,
    `xapp-1-${filler(40)}`,
    `whsec_${filler(32)}`,
    `ya29.${filler(60)}`,
    `rubygems_${hex(48)}`,
    `pplx-${filler(48)}`,
    `r8_${filler(37)}`,
    `key-${hex(32)}`,
    `dor_v1_${hex(64)}`,
    ...['at', 'ca', 'pa', 'ss'].map((kind) => `shp${kind}_${hex(32)}`),
    `sq0atp-${filler(22)}`,
    `sq0csp-${filler(43)}`,
    `hvb.${filler(60)}`,
    `dp.pt.${filler(43)}`,
    `dckr_pat_${filler(27)}`,
    `glc_${filler(60)}`,
    `sntrys_${filler(60)}`,
    `NRAK-${upper(27)}`,
    `lin_api_${filler(40)}`,
    `ntn_${filler(46)}`,
    `figd_${filler(40)}`,
    `pscale_tkn_${filler(43)}`,
    `sbp_${hex(40)}`,
    `ATATT3${filler(180)}`,
    ...['alg', 'typ', 'kid', 'cty', 'enc', 'x5t', 'jku', 'jwk', 'zip'].map((name) =>
      jwt({ [name]: 'HS256xyz', b: 1 }),
    ),
  ],
  PrivateKey: [
    pem(''),
    pem('RSA '),
    pem('OPENSSH '),
    pem('ENCRYPTED ').replaceAll('\n', '\r\n'),
    pem('EC ').replaceAll('\n', '\\n'),
    pem('', lines.replaceAll('\n', ' ')),
    pem('RSA ', `\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,${hex(32)}\n\n${lines}\n`),
    `AGE-SECRET-KEY-1${upper(58)}`,
  ],
}

const passed: readonly string[] = [
  // Check digits, length of the country, unknown countries, and the middle of words.
  'DE88370400440532013000',
  'DE89 3704 0044 0532 0130 01',
  'DE893704004405320130',
  'DE89370400440532013000X',
  'xDE89370400440532013000',
  'ZZ89370400440532013000',
  'DE89 3704-0044 0532-0130 00',
  // Versions, times, parts of programs and hardware addresses.
  '1.2.3',
  '0.0.0.0',
  'dead::',
  '1::',
  '1.2.3.4.5',
  'v1.2.3.4.5',
  '256.1.1.1',
  '1.2.3.4567',
  '12:30:45',
  'std::vec::Vec',
  'a::b',
  'ab::cd',
  'xs[1::2]',
  'xs[::2]',
  'aa:bb:cc:dd:ee:ff',
  '1:2:3:4:5:6:7:8:9',
  '2001:db8::1::2',
  // Words and names that begin as keys do.
  'sk-learn',
  'sk-your-key-here',
  'risk-assessment-of-the-whole-project-2026',
  'ghp_short',
  'AKIAEXAMPLE',
  `AKIA${upper(17)}`,
  `x${found.ApiKey[4]}`,
  'npm_config_registry',
  'eyJ',
  base64url({ cursor: 'a page of a list, which is not a token' }),
  'key-value pairs',
  // A mention, and public keys.
  `a file that begins with -----BEGIN PRIVATE ${'KEY'}----- has a key`,
  `-----BEGIN PUBLIC KEY-----\n${lines}\n-----END PUBLIC KEY-----`,
  `-----BEGIN CERTIFICATE-----\n${lines}\n-----END CERTIFICATE-----`,
]

describe('builtins of accounts, addresses and keys', () => {
  const mask = maskOf(names)
  afterAll(() => mask.dispose())

  for (const name of names) {
    it(`mask each ${name} of the corpus, and no other builtin does`, () => {
      using own = maskOf([name])
      using others = maskOf(names.filter((other) => other !== name))
      const mark = builtinReplacements[name]
      for (const text of found[name]) {
        const place = [`is ${text}. And more`, `("${text}")`, text, `a, ${text}\nb`]
        const wanted = [`is ${mark}. And more`, `("${mark}")`, mark, `a, ${mark}\nb`]
        expect(place.map((each) => own.apply(each).text)).toEqual(wanted)
        expect(others.apply(text).count, text).toBe(0)
      }
    })
  }

  // A scan notes in which blocks of 64 bytes a match can begin.
  it('mask each text at any distance from the start of the text', () => {
    for (const name of names) {
      for (const text of found[name]) {
        for (let before = 0; before <= 130; before++) {
          const filler = ' a'.repeat(66).slice(-before - 1, -1)
          expect(mask.apply(`${filler} ${text}`).text).toBe(
            `${filler} ${builtinReplacements[name]}`,
          )
        }
      }
    }
  })

  it('mask nothing that has a wrong check digit, another length or another meaning', () => {
    for (const text of passed) expect(mask.apply(`${text} `).text).toBe(`${text} `)
  })

  it('find a match after one that is not verified', () => {
    expect(mask.apply('AB12 DE89 3704 0044 0532 0130 00').text).toBe('AB12 <IBAN>')
    expect(mask.apply('DE89 3704 0044 0532 0130 00 ABCD EFGH').text).toBe('<IBAN> ABCD EFGH')
    expect(mask.apply('DE89370400440532013000 failed').text).toBe('<IBAN> failed')
    expect(mask.apply('cafe:10.0.0.1').text).toBe('cafe:<IP_ADDRESS>')
    expect(mask.apply('10.0.0.1-10.0.0.9 [2001:db8::1]:443').text).toBe(
      '<IP_ADDRESS>-<IP_ADDRESS> [<IP_ADDRESS>]:443',
    )
  })

  it('mask a private key whose end is missing', () => {
    const cut = pem('RSA ').slice(0, 150)
    expect(mask.apply(`key: ${cut}`).text).toBe('key: <PRIVATE_KEY>')
  })

  it('are the same wherever a stream is cut, and hold back at most holdBytes', () => {
    const bound = mask.holdBytes ?? 0
    expect(bound).toBeGreaterThan(0)
    expect(bound).toBeLessThan(1300)
    const words = [...names.flatMap((name) => found[name]), ...passed, 'é☃', '-----', 'sk-', '::']
    const texts = fc.array(
      fc.tuple(fc.constantFrom(...words), fc.constantFrom(' ', '', '\n', ', ', '-', ':', '.')),
      { minLength: 1, maxLength: 6 },
    )
    const cuts = fc.array(fc.nat({ max: 2000 }), { maxLength: 8 })
    fc.assert(
      fc.property(texts, cuts, fc.boolean(), (parts, places, isEvery) => {
        const bytes = Buffer.from(parts.flat().join(''))
        const ends = isEvery
          ? Array.from(bytes.keys())
          : places.map((place) => place % bytes.length)
        using stream = mask.stream()
        let from = 0
        const out: Uint8Array[] = []
        for (const end of ends.toSorted((a, b) => a - b)) {
          out.push(stream.pushBytes(bytes.subarray(from, end)))
          expect(stream.heldBytes).toBeLessThanOrEqual(bound)
          from = end
        }
        out.push(stream.endBytes(bytes.subarray(from)))
        const whole = mask.apply(bytes.toString())
        expect(Buffer.concat(out).toString()).toBe(whole.text)
        expect(stream.count).toBe(whole.count)
      }),
      { numRuns: 150 },
    )
  })

  it.each([
    ['1:', 'IpAddress'],
    ['1.', 'IpAddress'],
    ['DE89 ', 'Iban'],
    ['sk-', 'ApiKey'],
    ['eyJhbGciOi.', 'ApiKey'],
    [`-----BEGIN PRIVATE ${'KEY'}-----`, 'PrivateKey'],
  ] as const)('read a text of repeated %j in linear time', (text, name) => {
    using one = maskOf([name])
    // The core refuses a text of which it would read each byte more than 256 times.
    expect(one.apply(text.repeat(1_000_000 / text.length)).text).toBeDefined()
  })
})
