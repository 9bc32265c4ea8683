/** Builtins of numbers that countries give out. Each number below is a published example, or was computed by hand. */
import { describe, expect, it } from 'vitest'
import type { Builtin } from '../../../src/engines/core/regex-builtins.ts'
import { compileMask } from '../../../src/engines/core/regex-mask.ts'

const numbers = {
  VatNumber: [
    ...[
      'ATU13585627',
      'BE0428759497',
      'BE 0428.759.497',
      'BE0428.759.497',
      'DE136695976',
      'DE 136 695 976',
    ],
    ...['DK13585628', 'DK 13 58 56 28', 'ESX5910266W', 'FI20774740', 'FR40303265045'],
    ...['FR 40 303 265 045', 'GB980780684', 'GB 980 7806 84', 'IT00743110157', 'IT 00743110157'],
    ...['LU15027442', 'PL8567346215', 'PL 856-734-62-15', 'PT501964843', 'SE123456789701'],
    ...['ESB58378431', 'ES B58378431', 'ES-B58378431', 'ESM1234567L', 'ESK0867756N'],
    ...['FRK7399859412', 'FR K7 399 859 412', 'FR 4Z 123 456 782', 'FR53000004605'],
    ...['XI980780684', 'it00743110157'],
  ],
  DeTaxId: ['86095742719', '86 095 742 719', '65929970489'],
  FrNir: [
    '184127645108946',
    '1 84 12 76 451 089 46',
    '253072B07300470',
    '253072B073004 70',
    '2 53 07 2B 073 004 70',
  ],
  EsNif: ['12345678Z', '12345678-Z', '12.345.678-Z', 'X1234567L', 'X-1234567-L', 'y2345678z'],
  ItFiscalCode: ['RSSMRA85T10A562S', 'MRTMTT91D08F205J', 'mrtmtt91d08f205j'],
  NlBsn: ['111222333', '123456782', '1234.56.782', '123 456 782'],
  PlPesel: ['44051401359', '44051401458', '02070803628'],
  SePersonnummer: ['811218-9876', '8112189876', '19811218-9876', '198112189876', '670919-9530'],
  UkNhs: ['9434765919', '943 476 5919', '943-476-5919', '4010232137'],
  InAadhaar: ['234123412346', '2341 2341 2346', '2341-2341-2346'],
  BrCpf: ['529.982.247-25', '52998224725', '111.444.777-35'],
  BrCnpj: ['11.222.333/0001-81', '11222333000181', '11222333/0001-81', '11.444.777/0001-61'],
} as const satisfies Partial<Record<Builtin, readonly string[]>>
/** Numbers with digits that no check digit covers. */
const unchecked: readonly (readonly [Builtin, readonly string[]])[] = [
  ['UkNino', ['AB123456C', 'AB 12 34 56 C', 'AB-12-34-56-C', 'JG 103759 A']],
  ['VatNumber', ['GB980780684001', 'XI 980780684001', 'NL004495445B01', 'NL123456789B13']],
]

function maskOf(builtin: Builtin) {
  const outcome = compileMask([{ builtin, replacement: '#' }])
  if (!outcome.ok) throw new Error(outcome.message)
  return outcome.mask
}

const all: readonly (readonly [Builtin, readonly string[]])[] = [
  ...(Object.entries(numbers) as [keyof typeof numbers, readonly string[]][]),
  ...unchecked,
]

describe('builtins of national numbers', () => {
  it.each(all)('mask each written form of %s, wherever a stream is cut', (builtin, texts) => {
    using mask = maskOf(builtin)
    for (const number of texts) {
      const bytes = Buffer.from(`is ${number}, and (${number}).`)
      expect(mask.apply(bytes.toString()).text).toBe('is #, and (#).')
      for (let cut = 0; cut <= bytes.length; cut++) {
        using stream = mask.stream()
        const first = stream.pushBytes(bytes.subarray(0, cut))
        const out = Buffer.concat([first, stream.endBytes(bytes.subarray(cut))])
        expect(out.toString(), `${number} cut at ${cut}`).toBe('is #, and (#).')
      }
      using stream = mask.stream()
      const pieces = [...bytes].map((byte) => stream.pushBytes(Uint8Array.of(byte)))
      expect(Buffer.concat([...pieces, stream.endBytes()]).toString()).toBe('is #, and (#).')
      for (let before = 0; before < 70; before++) {
        const filler = '-'.repeat(before)
        expect(mask.apply(`${filler} ${number}`).text).toBe(`${filler} #`)
      }
    }
  })

  it.each(Object.entries(numbers) as [Builtin, readonly string[]][])(
    'do not mask a %s of which one digit is another',
    (builtin, texts) => {
      using mask = maskOf(builtin)
      for (const number of texts) {
        for (let at = 0; at < number.length; at++) {
          const digit = Number(number[at])
          if (number[at] === ' ' || Number.isNaN(digit)) continue
          const wrong = `${number.slice(0, at)}${(digit + 1) % 10}${number.slice(at + 1)}`
          expect(mask.apply(`is ${wrong}.`).count, wrong).toBe(0)
        }
      }
    },
  )

  it.each(all)('do not mask a %s within a word', (builtin, texts) => {
    using mask = maskOf(builtin)
    for (const number of texts) {
      expect(mask.apply(`x${number} y`).text, number).not.toMatch(/^#/)
      expect(mask.apply(`is_${number}1`).count, number).toBe(0)
    }
  })

  it('do not mask numbers that are not given out, or dates that do not exist', () => {
    for (const [builtin, text] of [
      ['VatNumber', 'DE040178805'],
      ['VatNumber', 'PT098220209'],
      ['VatNumber', 'ESI58378431'],
      ['VatNumber', 'FRI4399859412'],
      ['VatNumber', 'FRZA418929923'],
      ['VatNumber', 'NL816532667B00'],
      ['VatNumber', 'IT26835355772'],
      ['ItFiscalCode', 'IJNTWR42S31J332A'],
      ['PlPesel', '76093135798'],
      ['UkNino', 'QQ123456C'],
      ['UkNino', 'GB123456A'],
      ['UkNino', 'AB123456E'],
      ['PlPesel', '44991401359'],
      ['BrCpf', '111.111.111-11'],
      ['BrCnpj', '00000000000000'],
      ['InAadhaar', '123412341234'],
      ['NlBsn', '000000000'],
    ] as const) {
      using mask = maskOf(builtin)
      expect(mask.apply(`${text} `).count, text).toBe(0)
    }
  })

  it('do not take words of a sentence for letters of a number', () => {
    for (const [builtin, text] of [
      ['VatNumber', 'un total de 136 695 976 euros'],
      ['VatNumber', 'De 136695976 personas'],
      ['VatNumber', 'it 00743110157 times'],
      ['UkNino', 'sold at 123456 a share'],
      ['UkNino', 'at 12 34 56 a'],
      ['EsNif', 'cuesta 12345678 z'],
      ['EsNif', 'entre 5 y 2345678 z'],
    ] as const) {
      using mask = maskOf(builtin)
      expect(mask.apply(text).count, text).toBe(0)
      expect(mask.apply(text.toUpperCase()).count, text).toBe(1)
    }
  })

  it('hold back a few letters of a stream, which may begin a number', () => {
    using mask = maskOf('VatNumber')
    using stream = mask.stream()
    expect(stream.push('the order of DE')).toBe('the order of ')
    expect(stream.push(' ')).toBe('')
    expect(stream.push('136 695 976 and more\n')).toBe('# and more\n')
  })
})
