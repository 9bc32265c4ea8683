/** Every place of every format has a different text, and a guard with a scope sees exactly the texts in scope. */
import { describe, expect, it } from 'vitest'
import { type ClientFormat, chatFormatOf } from '../../src/engines/messages/format.ts'
import { clientFormats } from '../../src/engines/messages/formats/index.ts'
import { modelPlaces, type Place } from '../../src/engines/messages/mask/places.ts'
import { mapRepeatedTexts } from '../../src/engines/messages/mask/repeated-texts.ts'
import { jsonAware, scopedMap } from '../../src/engines/messages/mask/scoped-texts.ts'
import {
  requestTexts,
  responseTexts,
  withRequestTexts,
} from '../../src/engines/messages/mask/slots.ts'
import { mapRequestTexts, mapResponseTexts } from '../../src/engines/messages/mask/texts.ts'
import type { TextsMap } from '../../src/engines/messages/mask/texts-map.ts'
import { placedBody } from '../support/placed-texts.ts'

const formats = Object.values<ClientFormat>(clientFormats).flatMap(
  (format) => chatFormatOf(format) ?? [],
)
const canariesIn = (texts: readonly string[]): string[] =>
  [...new Set(texts.flatMap((text) => text.match(/canary\d+x/g) ?? []))].sort()

/** Returns the canaries that a function maps for a scope. */
function seen(mapAll: (map: TextsMap) => unknown, scope: ReadonlySet<Place> | undefined): string[] {
  const texts: string[] = []
  const collect: TextsMap = (some) => {
    texts.push(...some)
    return some
  }
  mapAll(scopedMap(jsonAware(collect), scope))
  return canariesIn(texts)
}

describe('scopes of guards', () => {
  for (const format of formats) {
    const { request, response } = format.places
    it(`reads exactly the places in scope of ${format.name} requests`, () => {
      const { body, canaries } = placedBody(request)
      const usual: string[] = []
      for (const place of modelPlaces) {
        const scope = new Set<Place>([place])
        const wanted = [...canaries].filter(([, at]) => at === place).map(([canary]) => canary)
        const found = seen((map) => mapRequestTexts(body, map, format.ownTexts), scope)
        expect(found, place).toEqual(wanted.sort())
        const shown = requestTexts(body, format.ownTexts, scope)
        expect(canariesIn(shown.map(({ content }) => content)), `${place} for services`).toEqual(
          wanted,
        )
        const masked = shown.map(({ role, content }) => ({
          role,
          content: content.replace(/canary\d+x/g, 'gone'),
        }))
        if (place === 'Reasoning') continue
        const changed = withRequestTexts(body, format, masked, scope)
        const left = seen(
          (map) => mapRequestTexts(changed ?? body, map, format.ownTexts),
          new Set(modelPlaces),
        )
        expect(left, `${place} masked`).toEqual(
          [...canaries.keys()].filter((one) => !wanted.includes(one)).sort(),
        )
        if (!['ToolDefinition', 'ToolInput', 'Reasoning'].includes(place)) usual.push(...wanted)
      }
      const found = seen((map) => mapRequestTexts(body, map, format.ownTexts), undefined)
      expect(found).toEqual(usual.sort())
    })

    it(`reads exactly the places in scope of ${format.name} responses`, () => {
      const { body, canaries } = placedBody(response)
      const mapAll = (map: TextsMap) =>
        mapResponseTexts(mapRepeatedTexts(body, map), format.texts, map, format.ownTexts)
      for (const place of modelPlaces) {
        const wanted = [...canaries].filter(([, at]) => at === place).map(([canary]) => canary)
        const scope = new Set<Place>([place])
        expect(seen(mapAll, scope), place).toEqual(wanted.sort())
        if (place === 'Documents') continue
        const shown = responseTexts(body, format, scope).map(({ content }) => content)
        expect(canariesIn(shown), `${place} for services`).toEqual(wanted)
      }
    })
  }

  it('masks a match of a name with its value in the input of tools', () => {
    const map = jsonAware((texts) => texts.map((text) => text.replace(/"pin":"\d+"|.secret/, '')))
    const masked = (text: string) => map([text], false, 'ToolInput')[0]
    expect(masked('{"pin":"1234"}')).toBe('{}')
    expect(masked('{"a":"a secret","a":"b"}')).toBe('{"a":"b"}')
    expect(masked('{"a":"a secret"}')).toBe('{"a":"a"}')
  })

  it('masks a match of a name with its value, even if another match is inside a value', () => {
    const map = jsonAware((texts) =>
      texts.map((text) => text.replace(/"pin":\s?"\d+"|secret/g, 'gone')),
    )
    const masked = (text: string) => map([text], false, 'ToolInput')[0]
    expect(masked('{"a":"secret","pin":"1234"}')).toBe('{"a":"gone",gone}')
    expect(masked('{"pin":"1234","secret":[1]}')).toBe('{gone,"gone":[1]}')
  })

  it('masks a match with the white space between a name and its value', () => {
    const map = jsonAware((texts) => texts.map((text) => text.replace(/"pin": "\d+"/, 'gone')))
    const masked = (text: string) => map([text], false, 'ToolInput')[0]
    expect(masked('{"a": "b  c\\" ",\n "pin": "1234"}')).toBe('{"a": "b  c\\" ",\n gone}')
    expect(masked('{"a":"\\"pin\\": \\"1\\""}')).toBe('{"a":"gone"}')
  })
})
