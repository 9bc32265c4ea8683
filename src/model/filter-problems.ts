/** What keeps a filter of a route from being carried out; proxies fail such a rule closed. */
import { headerProblems } from './header-changes.ts'
import type { PathModifier, RouteFilter } from './resources.ts'

interface FilterProblem {
  /** Field of the filter as a user writes it, such as `urlRewrite.path.replaceFullPath`. */
  readonly path: string
  readonly message: string
}

/** The first thing in the filter that could not be sent; undefined where all is well. */
export function filterProblem(filter: RouteFilter): FilterProblem | undefined {
  switch (filter.type) {
    case 'requestHeaders':
      return within('requestHeaderModifier', headerProblems(filter.changes)[0])
    case 'responseHeaders':
      return within('responseHeaderModifier', headerProblems(filter.changes)[0])
    case 'rewrite':
      return within('urlRewrite', hostProblem(filter.hostname) ?? pathProblem(filter.path))
    case 'redirect':
      return within('requestRedirect', hostProblem(filter.hostname) ?? pathProblem(filter.path))
    case 'mirror':
      return undefined
  }
}

const within = (member: string, problem: FilterProblem | undefined): FilterProblem | undefined =>
  problem && { path: `${member}.${problem.path}`, message: problem.message }

function hostProblem(hostname: string | undefined): FilterProblem | undefined {
  if (hostname === undefined || /^[0-9A-Za-z.\-_[\]:]+$/.test(hostname)) return undefined
  return { path: 'hostname', message: `${JSON.stringify(hostname)} is not a host name` }
}

/** The query is not part of it: a rewrite and a redirect keep that of the request. */
function pathProblem(path: PathModifier | undefined): FilterProblem | undefined {
  if (path === undefined || isPath(path.value)) return undefined
  const member = path.type === 'ReplaceFullPath' ? 'replaceFullPath' : 'replacePrefixMatch'
  return {
    path: `path.${member}`,
    message: `${JSON.stringify(path.value)} is not a path: it must be visible ASCII characters without ? and #`,
  }
}

/** Can the text stand as the path of a request target? */
function isPath(text: string): boolean {
  return /^[\x21-\x7e]*$/.test(text) && !/[?#]/.test(text)
}
