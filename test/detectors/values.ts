/**
 * Values of each detector and texts that look like them, made with random digits. Check digits are computed here
 * in other ways than in the core, from the definitions of the issuers. Keys are random, and made of parts, so that
 * scanners of code hosts do not take this file for a leak.
 */
import type { Builtin } from '../../src/engines/core/regex-builtins.ts'

/** Random numbers of a seed (mulberry32). */
export class Random {
  #state: number
  constructor(seed: number) {
    this.#state = seed
  }
  /** Returns an integer from 0 to `limit` - 1. */
  below(limit: number): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0
    let t = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return Math.floor((((t ^ (t >>> 14)) >>> 0) / 2 ** 32) * limit)
  }
  pick<T>(items: readonly T[]): T {
    const item = items[this.below(items.length)]
    if (item === undefined) throw new Error('an empty list')
    return item
  }
  text(length: number, alphabet: string): string {
    return Array.from({ length }, () => alphabet[this.below(alphabet.length)]).join('')
  }
  digits(length: number): string {
    return this.text(length, '0123456789')
  }
}

const upper = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ'
const base62 = `${upper}${upper.toLowerCase()}0123456789`
const hex = '0123456789abcdef'

const sum = (digits: string, weights: readonly number[]) =>
  [...digits].reduce((total, digit, index) => total + Number(digit) * (weights[index] ?? 0), 0)
/** The digit that completes a number for Luhn's check. */
const luhn = (digits: string) => {
  const total = [...digits].toReversed().reduce((before, digit, index) => {
    const value = Number(digit) * (index % 2 === 0 ? 2 : 1)
    return before + Math.floor(value / 10) + (value % 10)
  }, 0)
  return `${digits}${(10 - (total % 10)) % 10}`
}
/** Tries random numbers until one has a check digit. */
function until(make: () => string | undefined): string {
  for (;;) {
    const made = make()
    if (made !== undefined) return made
  }
}
/** Puts separators into a text: `3-2-4` is three characters, a dash, two, a dash and four. */
function grouped(text: string, form: string): string {
  let at = 0
  return form.replace(/\d+/g, (count) => {
    at += Number(count)
    return text.slice(at - Number(count), at)
  })
}

const mod11 = (digits: string, weights: readonly number[]) => {
  const rest = 11 - (sum(digits, weights) % 11)
  return rest === 11 ? 0 : rest
}
const mod1110 = (digits: string) => {
  const last = [...digits].reduce((product, digit) => {
    const rest = (Number(digit) + product) % 10 || 10
    return (rest * 2) % 11
  }, 10)
  return `${digits}${(11 - last) % 10}`
}
const mod97 = (text: string) =>
  Number(BigInt([...text].map((each) => Number.parseInt(each, 36)).join('')) % 97n)

const verhoeffTable = [
  [0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
  [1, 5, 7, 6, 2, 8, 3, 0, 9, 4],
  [5, 8, 0, 3, 7, 9, 6, 1, 4, 2],
  [8, 9, 1, 6, 0, 4, 3, 5, 2, 7],
  [9, 4, 5, 3, 1, 2, 6, 8, 7, 0],
  [4, 2, 8, 6, 5, 7, 3, 9, 0, 1],
  [2, 7, 9, 3, 8, 0, 6, 4, 1, 5],
  [7, 0, 4, 6, 9, 1, 3, 2, 5, 8],
] as const
/** The group of symmetries of a pentagon: 0 to 4 are rotations, 5 to 9 reflections. */
const turned = (a: number, b: number) => {
  const turn = a < 5 ? (a + b) % 5 : (((a - b) % 5) + 5) % 5
  return a < 5 === b < 5 ? turn : turn + 5
}
const verhoeff = (digits: string) =>
  [...digits]
    .toReversed()
    .reduce(
      (check, digit, index) => turned(check, verhoeffTable[index % 8]?.[Number(digit)] ?? 0),
      0,
    )

const iban = (country: string, account: string) => {
  const check = 98 - mod97(`${account}${country}00`)
  return `${country}${String(check).padStart(2, '0')}${account}`
}

const words = ['ann', 'bo.lund', 'c_ray', 'd-kim', 'info', 'sales+eu'] as const
const hosts = ['example.com', 'mail.example.org', 'example.co.uk', 'corp.example'] as const

type Maker = (random: Random) => string
export const makers: Readonly<Record<Builtin, Maker>> = {
  Ssn: (r) =>
    grouped(
      `${r.below(665) + 101}${r.below(89) + 10}${r.below(8999) + 1000}`,
      r.pick(['3-2-4', '3 2 4']),
    ),
  CreditCard: (r) => {
    const number = luhn(`${r.pick(['4', '51', '55', '2221'])}${r.digits(15)}`.slice(0, 15))
    return r.pick([number, grouped(number, '4 4 4 4'), grouped(number, '4-4-4-4')])
  },
  PhoneNumber: (r) =>
    r.pick([
      `+49 30 ${r.digits(8)}`,
      `+44 20 7${r.digits(3)} ${r.digits(4)}`,
      `(${r.below(700) + 201}) 5${r.digits(2)}-${r.digits(4)}`,
      `+1 ${r.below(700) + 201}-5${r.digits(2)}-${r.digits(4)}`,
    ]),
  Email: (r) => `${r.pick(words)}${r.below(100)}@${r.pick(hosts)}`,
  CaSin: (r) => grouped(luhn(`${r.below(6) + 1}${r.digits(7)}`), r.pick(['3 3 3', '3-3-3'])),
  Iban: (r) => {
    const number = r.pick([
      iban('DE', r.digits(18)),
      iban('GB', `${r.text(4, upper)}${r.digits(14)}`),
      iban('NL', `${r.text(4, upper)}${r.digits(10)}`),
      iban('NO', r.digits(11)),
    ])
    return r.pick([number, number.replace(/.{4}(?=.)/g, '$& ')])
  },
  IpAddress: (r) =>
    r.pick([
      `${r.below(223) + 1}.${r.below(256)}.${r.below(256)}.${r.below(256)}`,
      `2001:db8:${r.text(4, hex)}::${r.text(3, hex)}1`,
      `fe80::${r.text(4, hex)}:${r.text(4, hex)}`,
    ]),
  ApiKey: (r) =>
    r.pick([
      `sk${'-'}ant-api03-${r.text(93, base62)}`,
      `sk${'-'}proj-${r.text(64, base62)}`,
      `gh${'p'}_${r.text(36, base62)}`,
      `gl${'pat'}-${r.text(20, base62)}`,
      `AK${'IA'}${r.text(16, `${upper}234567`)}`,
      `xo${'xb'}-${r.digits(12)}-${r.digits(12)}-${r.text(24, base62)}`,
      `AI${'za'}${r.text(35, base62)}`,
      `hf${'_'}${r.text(34, base62)}`,
      `np${'m'}_${r.text(36, base62)}`,
      `sk${'_'}live_${r.text(24, base62)}`,
    ]),
  PrivateKey: (r) => {
    const kind = r.pick(['', 'RSA ', 'EC ', 'OPENSSH '])
    const lines = [64, 64, 64, 40].map((length) => r.text(length, `${base62}+/`)).join('\n')
    const edge = (name: string) => `-----${name} ${kind}PRIVATE ${'KEY'}-----`
    return `${edge('BEGIN')}\n${lines}\n${edge('END')}`
  },
  VatNumber: (r) =>
    r.pick([
      `DE${mod1110(`${r.below(9) + 1}${r.digits(7)}`)}`,
      `IT${luhn(`${r.below(9) + 1}${r.digits(6)}${String(r.below(100) + 1).padStart(3, '0')}`)}`,
      until(() => {
        const digits = `${r.below(9) + 1}${r.digits(8)}`
        const check = sum(digits, [6, 5, 7, 2, 3, 4, 5, 6, 7]) % 11
        return check === 10 ? undefined : `PL ${digits}${check}`
      }),
      until(() => {
        const siren = luhn(`${r.below(9) + 1}${r.digits(7)}`)
        const key = (12 + 3 * (Number(siren) % 97)) % 97
        return `FR ${String(key).padStart(2, '0')} ${grouped(siren, '3 3 3')}`
      }),
      `SE${luhn(`${r.below(9) + 1}${r.digits(8)}`)}01`,
    ]),
  DeTaxId: (r) => {
    const first = r.text(1, '123456789')
    const rest = [...'0123456789'].filter((each) => each !== first)
    const without = rest.splice(r.below(9), 1)[0] ?? ''
    const twice = rest[r.below(8)] ?? ''
    const order = [...rest, twice]
      .filter((each) => each !== without)
      .map((each) => [r.below(1e9), each] as const)
    const digits = `${first}${order
      .toSorted((a, b) => a[0] - b[0])
      .map(([, each]) => each)
      .join('')}`
    const number = mod1110(digits)
    return r.pick([number, grouped(number, '2 3 3 3')])
  },
  FrNir: (r) => {
    const month = String(r.below(12) + 1).padStart(2, '0')
    const body = `${r.below(2) + 1}${r.digits(2)}${month}${r.below(85) + 10}${r.digits(6)}`
    const number = `${body}${String(97 - Number(BigInt(body) % 97n)).padStart(2, '0')}`
    return r.pick([number, grouped(number, '1 2 2 2 3 3 2')])
  },
  EsNif: (r) => {
    const letters = 'TRWAGMYFPDXBNJZSQVHLCKE'
    const digits = String(r.below(89_999_999) + 10_000_000)
    const foreign = r.digits(7)
    const kind = r.below(3)
    return r.pick([
      `${digits}${letters[Number(digits) % 23]}`,
      `${digits}-${letters[Number(digits) % 23]}`,
      `${'XYZ'[kind]}${foreign}${letters[Number(`${kind}${foreign}`) % 23]}`,
    ])
  },
  ItFiscalCode: (r) => {
    const odd = [
      1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23,
    ]
    const day = String(r.below(28) + 1).padStart(2, '0')
    const body = `${r.text(6, upper)}${r.digits(2)}${r.pick([...'ABCDEHLMPRST'])}${day}${r.pick([...'ABCDEFGHIL'])}${r.digits(3)}`
    const total = [...body].reduce((before, each, index) => {
      const value = Number.isNaN(Number(each)) ? upper.indexOf(each) : Number(each)
      return before + (index % 2 === 0 ? (odd[value] ?? 0) : value)
    }, 0)
    return `${body}${upper[total % 26]}`
  },
  NlBsn: (r) =>
    until(() => {
      const digits = `${r.below(9) + 1}${r.digits(7)}`
      const check = sum(digits, [9, 8, 7, 6, 5, 4, 3, 2]) % 11
      return check === 10
        ? undefined
        : r.pick([`${digits}${check}`, grouped(`${digits}${check}`, '4.2.3')])
    }),
  PlPesel: (r) => {
    const date = `${r.digits(2)}${String(r.below(12) + 1 + r.pick([0, 20])).padStart(2, '0')}${String(r.below(28) + 1).padStart(2, '0')}`
    const digits = `${date}${r.digits(4)}`
    return `${digits}${(10 - (sum(digits, [1, 3, 7, 9, 1, 3, 7, 9, 1, 3]) % 10)) % 10}`
  },
  SePersonnummer: (r) => {
    const date = `${r.digits(2)}${String(r.below(12) + 1).padStart(2, '0')}${String(r.below(28) + 1).padStart(2, '0')}`
    const number = luhn(`${date}${r.digits(3)}`)
    return r.pick([grouped(number, '6-4'), `19${grouped(number, '6-4')}`])
  },
  UkNino: (r) => {
    const number = `${r.pick(['AB', 'CE', 'JG', 'PW', 'SY'])}${r.digits(6)}${r.pick(['A', 'B', 'C', 'D'])}`
    return r.pick([number, grouped(number, '2 2 2 2 1')])
  },
  UkNhs: (r) =>
    until(() => {
      const digits = `${r.below(9) + 1}${r.digits(8)}`
      const check = mod11(digits, [10, 9, 8, 7, 6, 5, 4, 3, 2])
      return check === 10
        ? undefined
        : r.pick([`${digits}${check}`, grouped(`${digits}${check}`, '3 3 4')])
    }),
  InAadhaar: (r) => {
    const digits = `${r.below(8) + 2}${r.digits(10)}`
    const number = until(() => {
      const last = `${digits}${r.below(10)}`
      return verhoeff(last) === 0 ? last : undefined
    })
    return r.pick([number, grouped(number, '4 4 4')])
  },
  BrCpf: (r) => {
    const digits = r.digits(9)
    const one = mod11(digits, [10, 9, 8, 7, 6, 5, 4, 3, 2]) % 10
    const two = mod11(`${digits}${one}`, [11, 10, 9, 8, 7, 6, 5, 4, 3, 2]) % 10
    return r.pick([`${digits}${one}${two}`, grouped(`${digits}${one}${two}`, '3.3.3-2')])
  },
  // Those after a word, such as `password: `, are in the sentences of the corpus.
  Secret: (r) => `${r.text(32, base62)}${r.pick(['aB3d', '9xK2', 'Q7wZ'])}`,
  BrCnpj: (r) => {
    const digits = `${r.digits(8)}0001`
    const one = mod11(digits, [5, 4, 3, 2, 9, 8, 7, 6, 5, 4, 3, 2]) % 10
    const two = mod11(`${digits}${one}`, [6, 5, 4, 3, 2, 9, 8, 7, 6, 5, 4, 3, 2]) % 10
    return r.pick([`${digits}${one}${two}`, grouped(`${digits}${one}${two}`, '2.3.3/4-2')])
  },
}

const camel = ['load', 'Account', 'Balance', 'With', 'Retry', 'For', 'Tenant', 'Cache'] as const

/** Texts that are in prompts and logs and that no detector should find. */
export const others: readonly Maker[] = [
  (r) => `order ${r.digits(8)}`,
  (r) => `invoice 2026-${r.digits(5)}`,
  (r) => `ticket ABC-${r.digits(4)}`,
  (r) =>
    `2026-${String(r.below(12) + 1).padStart(2, '0')}-${String(r.below(28) + 1).padStart(2, '0')}T12:${r.below(50) + 10}:07Z`,
  (r) => `commit ${r.text(40, hex)}`,
  (r) =>
    `${r.text(8, hex)}-${r.text(4, hex)}-4${r.text(3, hex)}-a${r.text(3, hex)}-${r.text(12, hex)}`,
  (r) => `version ${r.below(20)}.${r.below(20)}.${r.below(200)}`,
  (r) => `${r.digits(3)} of ${r.digits(4)} rows`,
  (r) => `total ${r.digits(5)}.${r.digits(2)} EUR`,
  (r) => `1${r.digits(12)} ms since the epoch`,
  (r) => `sha256:${r.text(64, hex)}`,
  (r) => `ratio 0.${r.digits(12)}`,
  (r) => `std::vec::Vec<u${r.pick([8, 16, 32, 64])}>`,
  (r) => `user_id=${r.digits(6)}, sk_buff, gh_pages, npm_config_cache`,
  (r) => `tel. extension ${r.digits(4)}, room ${r.below(900) + 100}`,
  (r) => `part no. ${r.text(3, upper)}-${r.digits(6)}`,
  (r) => `tracking ${r.text(2, upper)}${r.digits(9)}${r.text(2, upper)}`,
  (r) => `id ${r.digits(10)}`,
  (r) => `id ${r.digits(9)}`,
  (r) => `id ${r.digits(11)}`,
  (r) => `barcode ${r.digits(13)}`,
  (r) => `un total de ${r.digits(3)} ${r.digits(3)} ${r.digits(3)} habitants`,
  (r) => `sold at ${r.below(9) + 1}${r.digits(5)} a share, in ${r.digits(6)} d`,
  (r) => `backup-${String(r.below(9000) + 1000)}.tar.gz of ${r.digits(4)} MB`,
  (r) =>
    `${r.pick(camel)}${r.pick(camel)}${r.below(99)}${r.pick(camel)}${r.pick(camel)}${r.pick(camel)}`,
  (r) => `"integrity": "sha512-${r.text(86, `${base62}+/`)}=="`,
  (r) => `golang.org/x/net v0.${r.below(60)}.0 h1:${r.text(43, base62)}=`,
  (r) => `https://docs.example.com/d/${r.text(44, base62)}/edit`,
  (r) => `<img src="data:image/png;base64,${r.text(80, base62)}==">`,
  (r) => `ssh-ed25519 AAAA${r.text(64, base62)} ann@host`,
  (r) => `pod web-${r.text(10, hex)}-${r.text(5, hex)}, key fast, commit ${r.text(40, hex)}`,
]
