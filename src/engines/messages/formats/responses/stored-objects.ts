/** Seals the ids in what a provider returns about stored things: files, batches, conversations, items. */
import { type JsonObject, mapField, stringAt } from '../../json/json.ts'
import type { SealId, StoredKind } from '../../stored/stored-ids.ts'
import { sealItem } from './stored.ts'

/** Members with ids of files in a batch. */
const filesOfBatch = ['input_file_id', 'output_file_id', 'error_file_id']
/** Members with ids of items in a list of them. */
const endsOfList = ['first_id', 'last_id']

function sealMembers(
  body: JsonObject,
  names: readonly string[],
  kind: StoredKind,
  seal: SealId,
): JsonObject {
  const sealed: Record<string, unknown> = { ...body }
  for (const name of names) {
    const id = stringAt(body, name)
    if (id !== undefined && id !== '') sealed[name] = seal(kind, id)
  }
  return sealed
}

/** SDKs read the results at the address in the batch, which they join to that of the gateway if it is a path. */
const withOwnResults = (batch: JsonObject): JsonObject =>
  stringAt(batch, 'results_url') === undefined
    ? batch
    : { ...batch, results_url: `/v1/messages/batches/${stringAt(batch, 'id')}/results` }

/** `kind` is what the path of the request names; `isOfItems` is set if the path leads to items of it. */
export function sealObject(
  body: JsonObject,
  kind: StoredKind,
  isOfItems: boolean,
  seal: SealId,
): JsonObject {
  if (stringAt(body, 'object') === 'list') {
    const ends = sealMembers(body, endsOfList, 'item', seal)
    return mapField(ends, 'data', (item) => sealItem(item, seal))
  }
  // The conversation of an item that is deleted.
  const isItem = isOfItems && stringAt(body, 'object') !== 'conversation'
  if (isItem) return sealItem(body, seal) as JsonObject
  const named = sealMembers(body, ['id'], kind, seal)
  if (kind === 'message-batch') return withOwnResults(named)
  return kind === 'batch' ? sealMembers(named, filesOfBatch, 'file', seal) : named
}
