/** The texts in whole responses. */
import { isObject, listAt, mapField, mapList } from '../../json/json.ts'
import { putText, textOfPart } from '../../mask/text-fields.ts'
import {
  mapContent,
  mapObject,
  mapRest,
  type Reading,
  type ResponseTexts,
} from '../../mask/texts.ts'

export const responsesTexts: ResponseTexts = {
  field: 'output',
  map: (value, reading) =>
    Array.isArray(value) ? mapOutput(value, reading) : mapContent(value, reading),
}

/** Maps the text parts of all items as one text. Keeps empty parts, because events refer to positions. */
function mapOutput(output: readonly unknown[], reading: Reading): readonly unknown[] {
  const { map, scope, place = 'Messages' } = reading
  const texts = output.flatMap((item) =>
    listAt(item, 'content').flatMap((part) => textOfPart(part, scope) ?? []),
  )
  const mapped = texts.length === 0 ? [] : map(texts, true, place)
  let next = 0
  const mapPart = (part: unknown): unknown => {
    const isText = textOfPart(part, scope) !== undefined
    const put = isText ? putText(part, mapped[next++] ?? '', scope) : part
    return mapRest(put, 'content', reading)
  }
  return mapList(output, (item) => {
    if (!isObject(item)) return mapContent(item, reading)
    const hasParts = Array.isArray(item.content)
    const others = mapObject(item, undefined, reading, hasParts ? 'content' : undefined)
    return hasParts ? mapField(others, 'content', mapPart) : others
  })
}
