/** Names that clients use for models, and the models that they stand for. */

export type Aliases = Readonly<Record<string, string>>

const escaped = (text: string): string => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')

/** Does a name fit a pattern in which `*` stands for any text? The whole name must. */
function fits(pattern: string, name: string): boolean {
  return new RegExp(`^${pattern.split('*').map(escaped).join('.*')}$`, 's').test(name)
}

/** The exact name first, then the longest pattern that fits; one step only, never a chain. */
export function resolveAlias(model: string, aliases: Aliases | undefined): string {
  if (aliases === undefined) return model
  if (Object.hasOwn(aliases, model)) return aliases[model] ?? model
  const patterns = Object.keys(aliases)
    .filter((name) => name.includes('*') && fits(name, model))
    .sort((a, b) => b.length - a.length || (a < b ? -1 : 1))
  const [best] = patterns
  return best === undefined ? model : (aliases[best] ?? model)
}
