/**
 * Log levels in the syntax of RUST_LOG: a comma-separated list of levels, each for all modules or for one
 * module and its submodules (`info,sluice::xds=debug`). The longest module name that matches decides. A
 * module without a level logs everything. Spans in brackets are ignored.
 */
const levels = ['trace', 'debug', 'info', 'warn', 'error', 'off'] as const
type FilterLevel = (typeof levels)[number]

interface LogFilter {
  /** Levels by module; the empty module stands for all modules. */
  readonly levels: ReadonlyMap<string, FilterLevel>
}

const directiveForm = /^([A-Za-z0-9_.:-]+)(?:\[[^\]]*\])?(?:=([A-Za-z]+))?$/

function levelOf(text: string): FilterLevel | undefined {
  return levels.find((level) => level === text.toLowerCase())
}

/** Returns undefined if the text is not valid. An empty filter logs only errors. */
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

/** Returns the lowest level that is logged for a module such as `sluice::xds`. */
export function levelFor({ levels: known }: LogFilter, module: string): FilterLevel {
  let best: string | undefined
  for (const name of known.keys()) {
    const fits = name === '' || module === name || module.startsWith(`${name}::`)
    if (fits && name.length >= (best?.length ?? 0)) best = name
  }
  return (best === undefined ? undefined : known.get(best)) ?? 'error'
}

/** Returns true if a line of this level is logged when `from` is the lowest level that is logged. */
export function isLogged(level: FilterLevel, from: FilterLevel): boolean {
  return from !== 'off' && levels.indexOf(level) >= levels.indexOf(from)
}
