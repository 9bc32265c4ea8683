/**
 * Adds the keys of LiteLLM, which stores SHA-256 hashes. The export is JSON: the response of its
 * `GET /key/list?return_full_object=true`, or a list of rows of its table of keys.
 */
import { isObject, type JsonObject } from '../../../ground/base/json-object.ts'
import { readWholeFile } from '../../../ground/base/read-whole-file.ts'
import { budgetOf } from '../../import/budgets.ts'
import { type CommandResult, exitCode, type Output, UsageError } from '../shared/output.ts'
import { KeyBudgets } from './key-budgets.ts'
import { type NewFileOptions, newConfigMapOf } from './keys.ts'
import { changeKeys, type Keys, type WrittenEntry } from './keys-file.ts'

export interface ImportOptions extends NewFileOptions {
  /** Also adds keys whose limits cannot be imported. */
  readonly allowLoss?: boolean
  /** A new file for the budgets of the keys, and the object whose requests they count. */
  readonly budgets?: string
  readonly budgetTarget: string
}

interface ImportedKey {
  readonly name: string
  readonly entry: WrittenEntry
  readonly row: JsonObject
  /** Members that have no counterpart in an entry. */
  readonly lost: readonly string[]
}

/** Members that limit nothing, or that are imported. All others are lost if they are set. */
const harmless = new Set(
  [
    ['token', 'token_id', 'key', 'key_name', 'key_alias', 'user_id', 'team_id', 'team_alias'],
    ['models', 'expires', 'duration', 'blocked', 'metadata', 'spend', 'model_spend', 'user_email'],
    ['created_at', 'created_by', 'updated_at', 'updated_by', 'last_active', 'organization_id'],
    ['org_id', 'project_id', 'user', 'created_by_user', 'key_type', 'soft_budget_cooldown'],
    ['auto_rotate', 'rotation_interval', 'rotation_count', 'last_rotation_at', 'key_rotation_at'],
    // They belong to max_budget.
    ['max_budget', 'budget_duration', 'budget_reset_at'],
  ].flat(),
)

/** Members of the metadata that LiteLLM itself reads as limits. */
const limitsInMetadata = /limit|budget|guardrail|policies|allowed|blocked|permission/i

/** Adds the keys to a file. */
export function importKeys(path: string, options: ImportOptions, output: Output): CommandResult {
  const { add, resultOf } = importedKeys(path, options, output)
  return resultOf(changeKeys(options.file, add, newConfigMapOf(options)), options.file)
}

/** What became of each key of the export, and the budgets of those that were added. */
interface Additions {
  readonly results: readonly Addition[]
  readonly budgets: KeyBudgets | undefined
}

/**
 * How the keys of an export are added, and the result: the exit code is 1 if a key was not added, or has lost a limit.
 * `add` may be called again with newer keys.
 */
export function importedKeys(
  path: string,
  {
    allowLoss = false,
    budgets: budgetFile,
    budgetTarget,
    namespace,
  }: Omit<ImportOptions, keyof NewFileOptions> & { readonly namespace?: string },
  output: Output,
) {
  const rows = rowsOf(path)
  const add = (keys: Keys): Additions => {
    const budgets = budgetFile ? new KeyBudgets(budgetFile, budgetTarget, namespace) : undefined
    return { results: rows.map((row) => addedKey(row, keys, allowLoss, budgets)), budgets }
  }
  const resultOf = (additions: Additions, place: string) =>
    importResult(path, additions, { place, budgetFile: budgetFile ?? '' }, output)
  return { add, resultOf }
}

function importResult(
  path: string,
  { results, budgets }: Additions,
  { place, budgetFile }: { readonly place: string; readonly budgetFile: string },
  output: Output,
): CommandResult {
  const added = results.flatMap(({ name }) => name ?? [])
  for (const [index, { problem }] of results.entries()) {
    if (problem !== undefined) output.report(`${path}: key ${index + 1}: ${problem}`)
  }
  const withBudget = budgets ? budgets.write() : 0
  return {
    text: () => [
      `added ${added.length} ${added.length === 1 ? 'key' : 'keys'} to ${place}`,
      ...(withBudget > 0 ? [`wrote the budgets of ${withBudget} to ${budgetFile}`] : []),
    ],
    json: { added },
    ...(results.some(({ problem }) => problem !== undefined) && { exitCode: exitCode.negative }),
  }
}

/** `name` is set if the key was added. */
interface Addition {
  readonly name?: string
  readonly problem?: string
}

/** Adds one key. An error about it is its problem. */
function addedKey(...args: Parameters<typeof addKey>): Addition {
  try {
    return addKey(...args)
  } catch (error) {
    if (error instanceof UsageError) return { problem: error.message }
    throw error
  }
}

function addKey(
  row: unknown,
  keys: Keys,
  allowLoss: boolean,
  budgets: KeyBudgets | undefined,
): Addition {
  const key = importedKey(row)
  if (typeof key === 'string') return { problem: key }
  const {
    name,
    entry,
    row: { max_budget: amount, budget_duration: duration },
  } = key
  const budget = isSet(amount) ? budgetOf(amount, duration) : undefined
  if (keys.has(name)) return { problem: `key ${name} already exists` }
  const loss = [...key.lost, ...(budget && !budgets ? ['max_budget'] : problemOf(budget))].join(
    ', ',
  )
  if (loss !== '' && !allowLoss) {
    return {
      problem: `${name}: ${loss} cannot be imported${hintOf(loss)}. To add the key without it, use --allow-loss`,
    }
  }
  keys.set(name, entry)
  if (typeof budget === 'object') budgets?.add({ id: idOf(key), ...budget })
  return loss === '' ? { name } : { name, problem: `${name}: ${loss} is not imported` }
}

const problemOf = (budget: ReturnType<typeof budgetOf> | undefined): string[] =>
  typeof budget === 'string' ? [`max_budget ${budget}`] : []

const idOf = ({ name, entry: { metadata } }: ImportedKey): string =>
  typeof metadata?.id === 'string' ? metadata.id : name

function rowsOf(path: string): readonly unknown[] {
  let parsed: unknown
  try {
    parsed = JSON.parse(readWholeFile(path))
  } catch (error) {
    throw new UsageError(`${path}: ${(error as Error).message}`)
  }
  const rows = isObject(parsed) ? parsed.keys : parsed
  if (!Array.isArray(rows)) {
    throw new UsageError(`${path}: expected a list of keys, or { "keys": [...] }`)
  }
  const { total_pages: pages, total_count: count } = isObject(parsed) ? parsed : {}
  if (Number(pages ?? 1) > 1 || Number(count ?? 0) > rows.length) {
    throw new UsageError(
      `${path}: this is one page of ${pages ?? 'several'}; export all keys with a larger \`size\`, or write the keys of all pages into one list`,
    )
  }
  return rows
}

/** Returns why the row is not a key, without quoting it. */
function importedKey(row: unknown): ImportedKey | string {
  if (!isObject(row)) return 'it is not an object'
  const { token, expires, models, blocked, metadata } = row
  if (typeof token !== 'string' || !/^[0-9a-f]{64}$/i.test(token)) {
    return 'it has no "token" with the hash of a key'
  }
  const entry: WrittenEntry = {
    keyHash: `sha256:${token.toLowerCase()}`,
    metadata: { ...(isObject(metadata) && metadata), ...ownersOf(row) },
    ...(typeof expires === 'string' && { expiresAt: timeOf(expires) }),
    ...(blocked === true && { disabled: true }),
    ...modelsOf(models),
  }
  return { name: nameOf(row, token), entry, row, lost: lostOf(row) }
}

/** Returns what limits the key in LiteLLM, and cannot limit it here. Members that are not known count as limits. */
function lostOf(row: JsonObject): string[] {
  const { metadata, models, team_id: team } = row
  const members = Object.keys(row).filter((name) => !harmless.has(name) && isSet(row[name]))
  const inner = isObject(metadata)
    ? Object.keys(metadata).filter((name) => limitsInMetadata.test(name) && isSet(metadata[name]))
    : []
  // Without models of its own, a key of a team has those of the team.
  const list = Array.isArray(models) ? models : []
  const isOfTeam = list.includes('all-team-models') || (list.length === 0 && isSet(team))
  return [
    ...members,
    ...inner.map((name) => `metadata.${name}`),
    ...(isOfTeam ? ['the models of its team'] : []),
  ]
}

function ownersOf({ user_id: owner, team_id: team }: JsonObject): JsonObject {
  return { ...(isSet(owner) && { owner }), ...(isSet(team) && { team }) }
}

/** LiteLLM lists `all-proxy-models`, or nothing, for a key that may use every model. */
function modelsOf(models: unknown): Pick<WrittenEntry, 'allowedModels'> {
  if (!Array.isArray(models) || models.length === 0) return {}
  if (models.includes('all-proxy-models') || models.includes('all-team-models')) return {}
  return { allowedModels: models.filter((name) => name !== 'no-default-models') }
}

/** The times of LiteLLM may lack a zone; they are UTC then. */
function timeOf(text: string): string {
  const hasZone = /(?:Z|[+-]\d\d:?\d\d)$/.test(text)
  const time = Date.parse(hasZone ? text : `${text}Z`)
  return Number.isNaN(time) ? text : new Date(time).toISOString()
}

function nameOf({ key_alias: alias }: JsonObject, token: string): string {
  const name = typeof alias === 'string' ? alias.replaceAll(/[^-._a-zA-Z0-9]/g, '-') : ''
  return name === '' ? `key-${token.slice(0, 12).toLowerCase()}` : name
}

const isSet = (value: unknown): boolean =>
  value !== undefined &&
  value !== null &&
  value !== '' &&
  !(typeof value === 'object' && Object.keys(value).length === 0)

const hintOf = (loss: string): string =>
  /\bmax_budget(?:,|$)/.test(loss) ? '; --budgets FILE writes max_budget as a GatewayBudget' : ''
