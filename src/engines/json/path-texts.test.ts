import { describe, expect, it } from 'vitest'
import fc from '../../../test/support/fast-check.ts'
import { JsonDocumentError, PathTexts, withTexts } from './path-texts.ts'
import { type JsonPath, parsePath } from './paths.ts'

function finder(...paths: readonly string[]): PathTexts {
  return new PathTexts([paths.map((path) => parsePath(path) as JsonPath)])
}
const textsIn = (document: string | Buffer, ...paths: readonly string[]) =>
  finder(...paths)
    .find(Buffer.from(document))
    .map(({ value }) => value)

/** Replaces all texts that the paths name. */
function replaced(document: string, ...paths: readonly string[]): string {
  const bytes = Buffer.from(document)
  const texts = finder(...paths).find(bytes)
  const written = withTexts(
    bytes,
    texts,
    texts.map(() => 'x"é'),
  )
  return written.toString()
}

describe('texts that paths name', () => {
  const document = '{"a":[{"b":"1","c":2},{"b":"3"}],"d":{"b":"4","e":{"b":"5"}},"f":"6"}'
  it.each([
    [['a[*].b'], ['1', '3']],
    [['a[1].b'], ['3']],
    [['$..b'], ['1', '3', '4', '5']],
    [['$.*.b'], ['4']],
    [
      ['$..e.b', 'f'],
      ['5', '6'],
    ],
    [['$.d.e'], ['b', '5']],
    [['a[0].c'], ['2']],
    [['missing', 'f.g', 'a.b', 'd[0]'], []],
  ])('of the paths %j are %j', (paths, expected) => {
    expect(textsIn(document, ...paths)).toEqual(expected)
  })

  it('include names of members if the path ends at an object or above it', () => {
    expect(textsIn('{"a":{"b":[1,true,null,{"c":"d"}]}}', '$')).toEqual(['a', 'b', '1', 'c', 'd'])
  })

  it('are found by escaped names, names in another case, and repeated names', () => {
    const text = '{"te\\u0078t":"1","TEXT":"2","text":"3","text":"4","te\u212At":"5","T\u212A":"6"}'
    expect(textsIn(text, 'text', 'tk')).toEqual(['1', '2', '3', '4', '6'])
  })

  it('are returned decoded', () => {
    expect(textsIn('{"a":"b\\u006fb\\u0040x\\/\\n"}', 'a')).toEqual(['bob@x/\n'])
    expect(textsIn('\ufeff{"a":"b"}', 'a')).toEqual(['b'])
  })

  it('are the only bytes that change in the written document', () => {
    const text = ' { "n" : 1e999 , "a" : "\\u0061" , "n":-0.0, "b":[ 12345678901234567890 ] }\n'
    expect(replaced(text, 'a')).toBe(text.replace('"\\u0061"', '"x\\"é"'))
    expect(replaced(text, 'b[0]')).toBe(text.replace('12345678901234567890', '"x\\"é"'))
    expect(replaced(text, 'z')).toBe(text)
  })

  it.each([
    '',
    'x',
    '{',
    '{}x',
    '{} {}',
    '{"a":1,}',
    '[1,]',
    '{"a" 1}',
    '{1:2}',
    '"\\x"',
    '"\n"',
    '01',
    '[1}',
    '+1',
    '\ufeff\ufeff1',
  ])('are not read from %j', (text) => {
    expect(() => textsIn(text, 'a')).toThrow(JsonDocumentError)
  })

  it('are not read from a document that is not UTF-8 or is nested too deeply', () => {
    expect(() => textsIn(Buffer.from('{"a":"\xff"}', 'latin1'), 'a')).toThrow('it is not UTF-8')
    expect(() => textsIn(Buffer.from('{"a":"b"}', 'utf16le'), 'a')).toThrow(JsonDocumentError)
    expect(textsIn(`${'['.repeat(1000)}"a"${']'.repeat(1000)}`, '$')).toEqual(['a'])
    expect(() => textsIn(`${'['.repeat(1001)}${']'.repeat(1001)}`, '$')).toThrow(
      'it is nested too deeply',
    )
  })

  it('are equal to the strings that JSON.parse returns, in random documents', () => {
    const space = fc.constantFrom(undefined, 1, '\t')
    fc.assert(
      fc.property(fc.jsonValue(), space, (value, indent) => {
        const expected: string[] = []
        const collect = (one: unknown): void => {
          if (typeof one === 'string') expected.push(one)
          else if (typeof one === 'number') expected.push(JSON.stringify(one))
          else if (typeof one === 'object' && one !== null) {
            for (const [name, item] of Object.entries(one)) {
              if (!Array.isArray(one)) expected.push(name)
              collect(item)
            }
          }
        }
        const text = JSON.stringify(value, undefined, indent)
        collect(JSON.parse(text))
        expect(textsIn(text, '$')).toEqual(expected)
      }),
    )
  })
})
