/** Builds the rule of an HTTPRoute for one path of an Ingress. */
import { type Conversion, compact, type Fields, filled } from '../conversion.ts'
import type { SourceField } from '../field.ts'
import type { IngressPath } from './paths.ts'

/** Settings of an Ingress that are part of its rules. */
export interface RuleSettings {
  readonly usesPatterns: boolean
  readonly rewriteTarget: SourceField
  /** Filters of every rule. */
  readonly filters: readonly Fields[]
  /** Responds to every request with a redirect. */
  readonly redirect: Fields | undefined
  readonly sessionPersistence: Fields | undefined
}

export function ruleOf(
  { path, type, backend, field }: IngressPath,
  settings: RuleSettings,
  annotations: SourceField,
  result: Conversion,
): Fields {
  const { filters, redirect, sessionPersistence, rewriteTarget } = settings
  const target = rewriteTarget.text()
  const { match, rewrite } =
    target === undefined
      ? { match: matchOf(path, type, settings.usesPatterns), rewrite: undefined }
      : rewritten(path, type, target)
  if (rewrite === undefined && target !== undefined) {
    result.report('lost', annotations, `the path is not rewritten to ${target}`, field.path)
  }
  if (redirect !== undefined) return { matches: [{ path: match }], filters: [redirect] }
  const change =
    rewrite === undefined ? [] : [{ type: 'URLRewrite', urlRewrite: { path: rewrite } }]
  const all = joined([...filters, ...change])
  return compact({
    matches: [{ path: match }],
    filters: filled(all),
    backendRefs: [backend],
    sessionPersistence,
  })
}

/** A rule may have one URLRewrite filter: host and path are changed by the same one. */
function joined(filters: readonly Fields[]): Fields[] {
  const rewrites = filters.filter((filter) => filter.type === 'URLRewrite')
  const others = filters.filter((filter) => filter.type !== 'URLRewrite')
  if (rewrites.length === 0) return others
  const urlRewrite = Object.assign({}, ...rewrites.map((filter) => filter.urlRewrite)) as Fields
  return [...others, { type: 'URLRewrite', urlRewrite }]
}

function matchOf(path: string, type: string, usesPatterns: boolean): Fields {
  if (type === 'Exact') return { type: 'Exact', value: path }
  const isPattern = type === 'ImplementationSpecific' && (usesPatterns || /[(|[\\$*]/.test(path))
  if (!isPattern) return { type: 'PathPrefix', value: path.replace(/(.)\/+$/, '$1') }
  const text = path.replace(/^\^/, '')
  return { type: 'RegularExpression', value: text.endsWith('$') ? text.slice(0, -1) : `${text}.*` }
}

/** Patterns that capture the rest of a path after a prefix, and what the target replaces the prefix with. */
const captures: readonly (readonly [pattern: RegExp, group: string])[] = [
  [/^(\/[\w./-]*?)\/?\(\/\|\$\)\(\.\*\)\$?$/, '$2'],
  [/^(\/[\w./-]*?)\/?\(\.\*\)\$?$/, '$1'],
  [/^(\/[\w./-]*?)\/\(\.\+\)\$?$/, '$1'],
]

function rewritten(
  path: string,
  type: string,
  target: string,
): { match: Fields; rewrite: Fields | undefined } {
  for (const [pattern, group] of captures) {
    const prefix = pattern.exec(path)?.[1]
    if (prefix === undefined || !target.endsWith(group)) continue
    const base = target.slice(0, -group.length).replace(/\/+$/, '')
    if (base.includes('$')) continue
    const rewrite = { type: 'ReplacePrefixMatch', replacePrefixMatch: base === '' ? '/' : base }
    return { match: { type: 'PathPrefix', value: prefix === '' ? '/' : prefix }, rewrite }
  }
  const match = matchOf(path, type, false)
  if (target.includes('$')) return { match, rewrite: undefined }
  return { match, rewrite: { type: 'ReplaceFullPath', replaceFullPath: target } }
}
