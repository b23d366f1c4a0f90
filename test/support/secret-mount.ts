// A folder of files that is mounted and updated as the kubelet does with a Secret: each name is a link through `..data`, which is swapped.
import { mkdir, readlink, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { freshFolder } from './fresh-folder.ts';

export type SecretMount = Awaited<ReturnType<typeof mountSecret>>;

export async function mountSecret(files: Readonly<Record<string, string>>) {
  const folder = freshFolder();
  let version = 0;
  const publish = async (contents: Readonly<Record<string, string>>): Promise<void> => {
    version += 1;
    const name = `..version_${version}`;
    await mkdir(join(folder, name));
    for (const [file, content] of Object.entries(contents)) await writeFile(join(folder, name, file), content);
    await symlink(name, join(folder, '..data_tmp'));
    await rename(join(folder, '..data_tmp'), join(folder, '..data'));
  };
  await publish(files);
  for (const file of Object.keys(files)) await symlink(join('..data', file), join(folder, file));
  return {
    path: (name: string) => join(folder, name),
    /** Replaces all files at once and removes the old ones. The set of names does not change. */
    async update(contents: Readonly<Record<string, string>>) {
      const old = await readlink(join(folder, '..data'));
      await publish(contents);
      await rm(join(folder, old), { recursive: true });
    },
  };
}
