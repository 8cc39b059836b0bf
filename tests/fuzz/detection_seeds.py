"""Seeds of detection_fuzz: the files of the converters of boxes. The first byte selects a row of
the target's table."""
from folder_seeds import joined

XML = b"""<?xml version="1.0" encoding="UTF-8"?>
<annotation><filename>a.png</filename><size><width>3</width><height>2</height></size>
<object><name>cat &amp; dog</name><pose>Left</pose><truncated>1</truncated><difficult>0</difficult>
<bndbox><xmin>0</xmin><ymin>0.5</ymin><xmax>2</xmax><ymax>2</ymax></bndbox>
<part><name>head</name></part></object></annotation>"""
KITTI = b"""Car 0.00 0 -1.57 0 0 1.5 2 1.6 1.7 4.1 -16.5 2.4 58.5 -1.59
DontCare -1 -1 -10 1 0 2 1 -1 -1 -1 -1000 -1000 -1000 -10
"""
OPEN_IMAGES = b"""ImageID,Source,LabelName,Confidence,XMin,XMax,YMin,YMax,IsTruncated,IsGroupOf
a,xclick,/m/1,1,0,1,0.5,1,0,1
b,xclick,/m/2,1,0,1,0.5,1,0,1
"""
HIERARCHY = (b'{"LabelName": "/m/x", "Subcategory": [{"LabelName": "/m/0", "Subcategory": '
             b'[{"LabelName": "/m/1"}]}]}')


def seed(kind, *files):
    return bytes([kind]) + joined(*files)


def detections():
    yield "voc", seed(0, XML)
    yield "voc_dtd", seed(0, b'<!DOCTYPE a [<!ENTITY x "y">]><annotation>&x;</annotation>')
    yield "voc_cdata", seed(0, XML.replace(b"Left", b"<![CDATA[Left]]>"))
    yield "voc_deep", seed(0, b"<annotation>" + b"<a>" * 300)
    yield "voc_lists", seed(1, b'"a"\n# b\na  1\n', XML)
    yield "kitti", seed(2, KITTI)
    yield "kitti_error", seed(3, KITTI + b"Van 0 0 0 1 1 1 2\n")
    yield "yolo", seed(4, b"path: .\ntrain: images\nnames: [cat, dog]\nnc: 2\n",
                       b"0 0.5 0.5 1 1\n1 0.1 0.1 0.9 0.1 0.5 0.9\n")
    yield "yolo_pose", seed(4, b"train:\n- images/a.png\nval: list.txt\nkpt_shape: [1, 3]\n"
                            b"names:\n  0: 'x'\n", b"0 0.5 0.5 1 1 0.2 0.3 2\n",
                            b"./images/a.png\n")
    yield "yolo_alias", seed(4, b"names: &a [x]\ntrain: *a\n")
    yield "darknet", seed(5, b"classes=1\ntrain = data/train.txt\nnames=data/obj.names\n", b"cat\n",
                          b"data/obj/a.png\n", b"0 0.5 0.5 1 1\n")
    yield "csv", seed(6, b"filename,width,height,class,xmin,ymin,xmax,ymax\n"
                      b'a.png,3,2,"a ""b""",0,0,2,2\n')
    yield "csv_split", seed(6, b"", b"x;y;w;h;label;file;split\n0;0;.5;.5;cat;a.png;train\n"
                            b";;;;;a.png;val\n")
    yield "open_images", seed(7, OPEN_IMAGES, b"LabelName,DisplayName\n/m/1,Cat\n")
    yield "hierarchy", seed(8, OPEN_IMAGES, b"/m/1,\"Cat, small\"\n", HIERARCHY)
    yield "dota", seed(9, b"imagesource:K3\ngsd:0.5\n0 0 2 0 2 1 0 1 ship 1\n1 0 2 1 1 2 0 1 car\n")
    yield "dota_five", seed(9, b"0 0 2 0 2 1 0 1 1 1 ship 1\n")
    yield "dota_far", seed(9, b"900 900 901 900 901 901 900 901 ship 0\n")
    yield "dota_tiles", seed(10, b"0 0 4 0 4 2 0 2 ship 2\n1e6 0 4 0 4 -1e6 0 2 ship 0\n")
    yield "hrsc", seed(11, b"a\n", b"<HRSC_Image><Img_Resolution>1</Img_Resolution><HRSC_Objects>"
                       b"<HRSC_Object><Class_ID>1</Class_ID><mbox_cx>1</mbox_cx>"
                       b"<mbox_cy>1</mbox_cy>"
                       b"<mbox_w>2</mbox_w><mbox_h>1</mbox_h><mbox_ang>-9</mbox_ang></HRSC_Object>"
                       b"</HRSC_Objects></HRSC_Image>")
    yield "icdar", seed(12, b"0,0,2,0,2,1,0,1,a,b\n0 0 2 1 \"c\"\n0,0,2,0,2,1,0,1,###\n")
    yield "yolo_rotated", seed(13, b"train: images\nnames: [cat]\n",
                               b"0 0 0 1 0 1 1 0 1\n0 .5 .5 .2 .2\n")
