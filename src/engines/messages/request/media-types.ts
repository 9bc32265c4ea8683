/** Corrects `image/jpg`, which clients use although vendors accept only `image/jpeg`. */

import type { RefusalRules, StringCheck } from '../../json/scanner.ts'
import {
  isObject,
  type JsonObject,
  mapField,
  objectAt,
  stringAt,
  withFields,
} from '../json/json.ts'

const wrongType = /^image\/jpg$/i
const wrongUrl = /^data:image\/jpg(?=[;,])/i
const rightType = 'image/jpeg'

type Map = (value: JsonObject) => JsonObject

/** Maps the object in a field, or all objects if the field contains a list. */
function mapObjects(holder: JsonObject, name: string, map: Map): JsonObject {
  return mapField(holder, name, (value) => (isObject(value) ? map(value) : value))
}

function mapUrl(holder: JsonObject, name: string): JsonObject {
  const url = stringAt(holder, name)?.replace(wrongUrl, `data:${rightType}`)
  return url === undefined ? holder : withFields(holder, { [name]: url })
}

const mapSource: Map = (source) =>
  wrongType.test(stringAt(source, 'media_type') ?? '')
    ? { ...source, media_type: rightType }
    : source

/** Maps a message, a part of one, or a tool result. */
const mapPart: Map = (part) => {
  const inner = mapObjects(mapObjects(part, 'content', mapPart), 'output', mapPart)
  const changed = objectAt(inner, 'source') ? mapObjects(inner, 'source', mapSource) : inner
  return objectAt(changed, 'image_url') === undefined
    ? mapUrl(changed, 'image_url')
    : mapObjects(changed, 'image_url', (image) => mapUrl(image, 'url'))
}

/** Returns the body with correct media types; the same object if nothing changes. */
export function settleMediaTypes(body: JsonObject): JsonObject {
  return mapObjects(mapObjects(body, 'messages', mapPart), 'input', mapPart)
}

/** More characters than the longest beginning that is corrected. */
const longestBeginning = 20

/** Refuses the wrong type, and beginnings with an escape, which may stand for it. */
const isRight: StringCheck = (bytes, start, end) => {
  const text = bytes.toString('latin1', start, Math.min(end, start + longestBeginning))
  return !text.includes('\\') && !wrongType.test(text) && !wrongUrl.test(text)
}

/** Bodies that pass these rules need no correction. */
export const mediaTypeRules: RefusalRules = {
  checked: { url: isRight, image_url: isRight, media_type: isRight },
}
