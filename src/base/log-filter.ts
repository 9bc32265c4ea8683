/**
 * What is logged, in the syntax of RUST_LOG: levels with commas between them, each for everything or
 * for one module and what is below it (`info,sluice::xds=debug`). The longest module that fits
 * decides. A module without a level logs everything. Spans in brackets are read and mean nothing.
 */
const levels = ['trace', 'debug', 'info', 'warn', 'error', 'off'] as const
type FilterLevel = (typeof levels)[number]

interface LogFilter {
  /** Levels by module; the empty module is everything. */
  readonly levels: ReadonlyMap<string, FilterLevel>
}

const directiveForm = /^([A-Za-z0-9_.:-]+)(?:\[[^\]]*\])?(?:=([A-Za-z]+))?$/

function levelOf(text: string): FilterLevel | undefined {
  return levels.find((level) => level === text.toLowerCase())
}

/** Undefined where the text is not of that form; an empty one lets errors through alone. */
export function parseLogFilter(text: string): LogFilter | undefined {
  const found = new Map<string, FilterLevel>()
  for (const part of text.split(',').map((one) => one.trim())) {
    if (part === '') continue
    const everything = levelOf(part)
    const [, module, word] = directiveForm.exec(part) ?? []
    const level = word === undefined ? 'trace' : levelOf(word)
    if (everything !== undefined) found.set('', everything)
    else if (module === undefined || level === undefined) return undefined
    else found.set(module, level)
  }
  return { levels: found }
}

/** The level from which a module is logged, such as `sluice::xds`. */
export function levelFor({ levels: known }: LogFilter, module: string): FilterLevel {
  let best: string | undefined
  for (const name of known.keys()) {
    const fits = name === '' || module === name || module.startsWith(`${name}::`)
    if (fits && name.length >= (best?.length ?? 0)) best = name
  }
  return (best === undefined ? undefined : known.get(best)) ?? 'error'
}

/** Is a line of this level logged where the filter says `from`? */
export function isLogged(level: FilterLevel, from: FilterLevel): boolean {
  return from !== 'off' && levels.indexOf(level) >= levels.indexOf(from)
}
