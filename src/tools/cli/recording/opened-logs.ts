/** Logs and exports that this process has opened to read, by path. Anyone may have written them. */
export const openedLogs = new Set<string>()
