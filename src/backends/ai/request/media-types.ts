/** `image/jpg` is no media type, but clients write it; vendors take `image/jpeg` only. */
import { isObject, type JsonObject, objectAt, stringAt } from '../json.ts'

const wrongType = /^image\/jpg$/i
const wrongUrl = /^data:image\/jpg(?=[;,])/i
const rightType = 'image/jpeg'

type Map = (value: JsonObject) => JsonObject

/** Maps the objects of a list in a field, and an object that stands there alone. */
function mapField(holder: JsonObject, name: string, map: Map): JsonObject {
  const value = holder[name]
  if (isObject(value)) {
    const mapped = map(value)
    return mapped === value ? holder : { ...holder, [name]: mapped }
  }
  if (!Array.isArray(value)) return holder
  const mapped = value.map((item: unknown) => (isObject(item) ? map(item) : item))
  const isSame = mapped.every((item, at) => item === value[at])
  return isSame ? holder : { ...holder, [name]: mapped }
}

function mapUrl(holder: JsonObject, name: string): JsonObject {
  const url = stringAt(holder, name)
  if (url === undefined || !wrongUrl.test(url)) return holder
  return { ...holder, [name]: url.replace(wrongUrl, `data:${rightType}`) }
}

const mapSource: Map = (source) =>
  wrongType.test(stringAt(source, 'media_type') ?? '')
    ? { ...source, media_type: rightType }
    : source

/** A message, a part of one, or a result of a tool. */
const mapPart: Map = (part) => {
  let changed = mapField(part, 'content', mapPart)
  changed = mapField(changed, 'output', mapPart)
  if (objectAt(changed, 'source') !== undefined) changed = mapField(changed, 'source', mapSource)
  if (objectAt(changed, 'image_url') !== undefined) {
    return mapField(changed, 'image_url', (image) => mapUrl(image, 'url'))
  }
  return mapUrl(changed, 'image_url')
}

/** The body with media types that vendors know; the same object if nothing is to be changed. */
export function settleMediaTypes(body: JsonObject): JsonObject {
  return mapField(mapField(body, 'messages', mapPart), 'input', mapPart)
}
