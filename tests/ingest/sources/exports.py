"""Exports as Confluence writes them: objects in any order, and a space in the end of CDATA within CDATA."""

import zipfile
from pathlib import Path

DESCRIPTOR = "exportType=space\nbuildNumber=8804\n"


def prop(name, value):
    if isinstance(value, tuple):
        kind, number = value
        return f'<property name="{name}" class="{kind}" package="x"><id name="id">{number}</id>\n</property>'
    if value is None:
        return f'<property name="{name}"/>'
    plain = str(value).replace("]]>", "]] >")
    return f'<property name="{name}"><![CDATA[{plain}]]></property>'


def entity(kind, number, **properties):
    inside = "\n".join(prop(name, value) for name, value in properties.items())
    return (
        f'<object class="{kind}" package="com.atlassian.confluence">\n<id name="id">{number}</id>\n{inside}\n</object>'
    )


def page(number, title, body, *, parent=None, version=1, space=1, kind="Page", **more):
    """A page and its body, the body first."""
    above = {"parent": ("Page", parent)} if parent else {}
    properties = {"contentStatus": "current", "lastModificationDate": f"2026-10-{version:02} 08:00:00.000", **more}
    return "\n".join([
        entity("BodyContent", f"9{number}", body=body, content=(kind, number), bodyType=2),
        entity(kind, number, title=title, version=version, space=("Space", space), **above, **properties),
    ])  # fmt: skip


def space(number=1, key="HR", *, group="staff", user=None):
    viewing = entity("SpacePermission", f"7{number}", type="VIEWSPACE", group=group, userName=user,
                     space=("Space", number))  # fmt: skip
    return entity("Space", number, name="People", key=key) + viewing


def restricted(number, *, group=None, user=None, kind="View"):
    """Return a restriction of a page: the permission, then its set."""
    return entity(
        "ContentPermission", f"6{number}", type=kind, userName=user, groupName=group,
        owningSet=("ContentPermissionSet", f"5{number}"),
    ) + entity("ContentPermissionSet", f"5{number}", type=kind, owningContent=("Page", number))  # fmt: skip


def labelled(number, name, namespace="global"):
    return entity("Labelling", f"4{number}", label=("Label", f"3{number}"), content=("Page", number)) + entity(
        "Label", f"3{number}", name=name, namespace=namespace
    )


def xml(*objects, before=""):
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>\n{before}<hibernate-generic>\n{"".join(objects)}\n</hibernate-generic>'
    )


def packed(path: Path, entities, **files):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("exportDescriptor.properties", DESCRIPTOR)
        if entities is not None:
            archive.writestr("entities.xml", entities)
        for name, content in files.items():
            archive.writestr(name, content)
    return path
